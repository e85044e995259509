"""Scans: a carried accumulator, and vectors scanned in log steps."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.nests import GPU, kernel_of, move, nest_of, numbers, same
from support.compiler.programs import all_of, count, depths, program_of
from support.compiler.schedules import TARGET, leaf, memory, planned

from glassgrad import Tensor
from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp
from glassgrad.loops import assign_grid_axes, optimize
from glassgrad.loops.opts import IllegalMove, Opt, OptOps
from glassgrad.loops.strategies.heuristic import heuristic


def scanned(rows: int, columns: int, axis: int = 1, op: Ops = Ops.ADD) -> Nest:
    x = numbers(rows, columns)
    return nest_of(UOp(Ops.SCAN, x.dtype, (x,), (op, axis)))


def test_a_scan_carries_one_accumulator() -> None:
    program = program_of(scanned(4, 12))
    (acc,) = all_of(program, Ops.ACC)
    assert acc.src[0].arg == 0
    assert depths(program, Ops.ACC) == [1], "it starts again in every row"
    assert depths(program, Ops.ASSIGN) == depths(program, Ops.STORE) == [2]


@pytest.mark.parametrize(
    ("op", "start"), [(Ops.ADD, 0), (Ops.MUL, 1), (Ops.MAX, -np.inf), (Ops.MIN, np.inf)]
)
def test_every_scan_starts_from_its_identity(op: Ops, start: float) -> None:
    (acc,) = all_of(program_of(scanned(4, 12, op=op)), Ops.ACC)
    assert acc.src[0].arg == start


def test_eight_steps_are_one_vector_that_is_scanned_in_three() -> None:
    program = program_of(move(scanned(4, 64), OptOps.UPCAST, 1, 8))
    assert {acc.dtype for acc in all_of(program, Ops.ACC)} == {dtypes.float32.vec(8)}
    additions = [u for u in all_of(program, Ops.ADD) if u.dtype is dtypes.float32.vec(8)]
    assert len(additions) == 3 + 2, "log 8 within, one for the values, one for what is carried"
    (store,) = all_of(program, Ops.STORE)
    assert store.src[1].dtype.count == 8


def test_columns_are_scanned_side_by_side() -> None:
    nest = scanned(12, 64, axis=0)
    assert [r.size for r in nest.outer] == [64, 12], "the scan is inside"
    program = program_of(move(nest, OptOps.UPCAST, nest.outer[0].axis, 16))
    assert len(all_of(program, Ops.ACC)) == 2
    assert count(program, Ops.GEP) == 0, "no lane needs another one"


def test_a_short_scan_needs_neither_loop_nor_accumulator() -> None:
    program = program_of(move(scanned(4, 8), OptOps.UPCAST, 1, 8))
    assert count(program, Ops.ACC) == 0
    assert count(program, Ops.RANGE) == 1


def test_moves_that_would_change_the_order_are_refused() -> None:
    nest = scanned(6, 10)
    rows, steps = [r.axis for r in nest.outer]
    for opt in (
        Opt(OptOps.CORE, steps),
        Opt(OptOps.SWAP, rows, steps),
        Opt(OptOps.UPCAST, steps, 4),
    ):
        with pytest.raises(IllegalMove):
            move(nest, opt.op, opt.axis, opt.arg)
    tiled = move(nest, OptOps.TILE, steps, 5)
    with pytest.raises(IllegalMove, match="last axis of a scan"):
        move(tiled, OptOps.UPCAST, steps, 2)


@pytest.mark.parametrize("columns", [5, 8, 31, 64, 100])
def test_the_heuristic_recipe_keeps_the_results_of_a_scan(columns: int) -> None:
    for op in (Ops.ADD, Ops.MUL, Ops.MAX):
        nest = scanned(6, columns, op=op)
        same(nest, heuristic(nest, TARGET))


def test_lengths_are_padded_to_whole_vectors() -> None:
    nest = scanned(6, 100)
    assert OptOps.PADTO in [opt.op for opt in heuristic(nest, TARGET).recipe]


def test_threads_share_the_rows_of_a_scan_and_not_its_steps() -> None:
    nest = assign_grid_axes(scanned(6, 10), GPU)
    assert [r.kind for r in nest.outer] == [AxisKind.GLOBAL, AxisKind.LOOP]


def test_elementwise_ops_around_a_scan_are_fused_and_vectorized() -> None:
    x = memory(64, 512)
    nest = optimize(kernel_of((x.exp().cumsum(1) + 1) * x), TARGET)
    assert sum(node.op is Ops.SCAN for node in nest.body.toposort()) == 1
    assert any(node.op is Ops.RANGE and node.kind is AxisKind.LANE for node in nest.body.toposort())


def test_scans_along_different_axes_are_different_kernels() -> None:
    assert len(planned(memory(64, 512).cumsum(0).cumsum(1)).kernels) == 2


def test_a_row_that_is_scanned_and_then_reduced_stays_in_scratch() -> None:
    made = planned(memory(64, 512).cumsum(1).max(1))
    assert len(made.kernels) == 1


def test_a_linear_recurrence_is_computed_correctly() -> None:
    x, factor = np.arange(20.0), np.linspace(-1, 1, 20)
    made = UOp(
        Ops.SCAN, dtypes.float64, (leaf(x, "float64"), leaf(factor, "float64")), (Ops.MULACC, 0)
    )
    want, last = [], 0.0
    for one, times in zip(x, factor, strict=True):
        last = last * times + one
        want.append(last)
    np.testing.assert_allclose(Tensor(x)._wrap(made).numpy(), want, rtol=1e-12)
