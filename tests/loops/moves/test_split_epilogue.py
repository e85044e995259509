"""SPLIT_EPILOGUE: a register tile in scratch, and a loop for the epilogue."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.compiler.nests import binders, kernel_of, move, product, refused, same
from support.compiler.programs import count, depths, program_of
from support.compiler.schedules import memory

from glassgrad import Tensor
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest, Param
from glassgrad.ir.uop import UOp, make_range
from glassgrad.loops.opts import OptOps


def tile(rows: int, columns: int, steps: int) -> Nest:
    """A product whose results are in registers: 6 rows of 16."""
    nest = move(product(rows, columns, steps), OptOps.UPCAST, 1, 16)
    return move(nest, OptOps.UPCAST, 0, 6)


def test_sums_go_to_scratch_and_a_loop_writes_them() -> None:
    before = tile(12, 32, 10)
    nest = move(before, OptOps.SPLIT_EPILOGUE, 4, 2)
    same(before, nest)
    (kept,) = binders(nest, Ops.STAGE)
    assert kept.arg == (16, 6) or kept.arg == (6, 16)
    (store,) = binders(nest, Ops.STORE)
    assert store.bound[-1].size == 3 and store.bound[-1].kind is AxisKind.LOOP
    assert store.bound[-1] not in nest.outer, "a loop of the stores alone"
    outside = [[r for r in n.outer if r.kind is AxisKind.LOOP] for n in (before, nest)]
    assert outside[0] == outside[1]


def test_sums_stay_in_registers_and_results_are_stored_in_a_loop() -> None:
    program = program_of(move(tile(12, 32, 10), OptOps.SPLIT_EPILOGUE, 4, 1))
    assert count(program, Ops.MULACC) == 12
    assert count(program, Ops.STORE) == 12 + 2, "all sums to scratch; a row of them from there"
    assert sorted(depths(program, Ops.STORE)) == [2] * 12 + [3] * 2


def test_all_registers_of_a_row_may_be_a_loop_as_well() -> None:
    before = tile(12, 32, 10)
    nest = move(before, OptOps.SPLIT_EPILOGUE, 3, 8)
    same(before, nest)


def test_sums_keep_their_lanes_and_results_have_registers_instead() -> None:
    nest = move(product(12, 32, 10), OptOps.UPCAST, 1, 16)
    before = move(nest, OptOps.LANES, 3, 8)
    (lane,) = [r for r in before.outer if r.kind is AxisKind.LANE]
    nest = move(before, OptOps.SPLIT_EPILOGUE, lane.axis, 4)
    same(before, nest)
    (kept,), (store,) = binders(nest, Ops.STAGE), binders(nest, Ops.STORE)
    assert any(r.kind is AxisKind.LANE for r in kept.bound)
    assert not any(r.kind is AxisKind.LANE for r in store.bound)


def test_errors_say_why_a_move_is_illegal() -> None:
    nest = tile(12, 32, 10)
    assert "unrolled output axis" in refused(nest, OptOps.SPLIT_EPILOGUE, 0, 2)
    assert "divide" in refused(nest, OptOps.SPLIT_EPILOGUE, 4, 4)
    assert "divide" in refused(nest, OptOps.SPLIT_EPILOGUE, 4, 6)
    kernel = kernel_of(memory(12, 32).cumsum(0))
    scanned = Nest(kernel.body, kernel.outer)
    axis = next(r for r in scanned.outer if r.size == 32)
    up = move(scanned, OptOps.UPCAST, axis.axis, 32)
    (register,) = [r for r in up.outer if r.kind is AxisKind.UPCAST]
    assert "more than sums" in refused(up, OptOps.SPLIT_EPILOGUE, register.axis, 8)


@pytest.mark.parametrize(("m", "n", "k"), [(64, 48, 100), (97, 130, 64), (12, 200, 333)])
def test_results_of_long_epilogues_are_right(m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(m)
    x, w, r = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n), (m, n)))
    found = ((Tensor(x) @ Tensor(w)).tanh() * Tensor(r) + Tensor(r).exp()).numpy()
    np.testing.assert_allclose(found, np.tanh(x @ w) * r + np.exp(r), rtol=2e-4, atol=2e-4)


def test_in_place_updates_are_right() -> None:
    rng = np.random.default_rng(5)
    w, m = (rng.standard_normal((96, 64)).astype(np.float32) for _ in range(2))
    x, g = rng.standard_normal((200, 96)), rng.standard_normal((200, 64))
    weight, state = Tensor(w.copy()).realize(), Tensor(m.copy()).realize()
    step = Tensor(x.astype(np.float32)).T @ Tensor(g.astype(np.float32))
    state.assign(state * 0.9 + step * 0.1)
    weight.assign(weight - 0.01 * state / ((step * step).sqrt() + 1.0) - weight * 0.001)
    Tensor.realize(weight, state)
    s = m * 0.9 + (x.T @ g) * 0.1
    np.testing.assert_allclose(state.numpy(), s, rtol=1e-3, atol=1e-3)
    expected = w - 0.01 * s / (np.abs(x.T @ g) + 1) - w * 0.001
    np.testing.assert_allclose(weight.numpy(), expected, rtol=1e-3, atol=1e-3)


def test_a_loop_that_the_sums_do_not_need_may_be_open_already() -> None:
    before = tile(12, 32, 100)
    (store,) = before.body.src
    again = make_range(9, 3)
    target, value, *ranges = store.src
    wide = UOp(Ops.PARAM, target.dtype, (), Param(7, (12, 32, 3), (96, 3, 1)))
    wider = UOp(Ops.STORE, store.dtype, (wide.index(*target.indices, again), value, *ranges, again))
    body = before.body.replace(src=(wider,))
    nest = replace(before, body=body, outer=(*before.outer, again))
    program = program_of(move(nest, OptOps.SPLIT_EPILOGUE, 4, 2))
    assert count(program, Ops.RANGE) == 5, "rows, columns, steps, the loop around, and the new one"
