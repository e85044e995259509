"""Scratch carried over the iterations of a loop; stages over the same loop share it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from math import prod

import numpy as np
import pytest
from support.compiler.programs import TARGET, all_of, depths, program_of

from glassgrad.base.dtype import dtypes
from glassgrad.devices.python.device import PythonDevice
from glassgrad.ir.ops import AxisKind, Exclusive, Ops
from glassgrad.ir.stages import Nest, Param, Target
from glassgrad.ir.uop import UOp, make_range
from glassgrad.loops.moves.lanes import choose_lanes
from glassgrad.loops.moves.table import apply_opt
from glassgrad.loops.nest import axes
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.lower import lower
from glassgrad.render import render

BLOCKS, ROWS = 4, 8
FLOAT = dtypes.float32


def param(slot: int, *shape: int) -> UOp:
    strides = tuple([prod(shape[i + 1 :]) for i in range(len(shape))])
    return UOp(Ops.PARAM, FLOAT, (), Param(slot, shape, strides))


class CarriedKernel:
    """y[r] = the carried value of x[c, r] after all iterations over c."""

    def __init__(self) -> None:
        self.number = count(1)
        self.blocks = make_range(0, BLOCKS)

    def x(self, row: UOp) -> UOp:
        return param(1, BLOCKS, ROWS).index(self.blocks, row).load()

    def rows(self) -> UOp:
        return make_range(next(self.number), ROWS)

    def scan(self, op: Ops | Exclusive, *sources: UOp) -> UOp:
        return UOp(Ops.SCAN, FLOAT, (*sources, self.blocks), op)

    def stage(self, row: UOp, value: UOp, *around: UOp) -> UOp:
        return UOp(Ops.STAGE, FLOAT, (value, row, *around, row), (ROWS,))

    def nest(self, *stages: UOp) -> Nest:
        row = self.rows()
        value = stages[0].index(row).load()
        for stage in stages[1:]:
            value = value + stage.index(row).load()
        store = UOp(Ops.STORE, dtypes.void, (param(0, ROWS).index(row), value, row))
        return Nest(UOp(Ops.SINK, dtypes.void, (store,)))


def total(op: Ops) -> Nest:
    kept, row = CarriedKernel(), make_range(40, ROWS)
    factor = (kept.x(row),) if op is Ops.MULACC else ()
    return kept.nest(kept.stage(row, kept.scan(op, kept.x(row), *factor), kept.blocks))


def run(nest: Nest, x: np.ndarray) -> np.ndarray:
    target = Target("PYTHON", "python", has_vector_alu=True)
    y = np.zeros(ROWS, np.float32)
    source = render(lower(nest, target), target)
    PythonDevice("PYTHON", target).compile(source)((y.ctypes.data, x.ctypes.data))
    return y


def numbers(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((BLOCKS, ROWS)).astype(np.float32)


def test_carried_scratch_is_initialized_outside_and_updated_in_each_iteration() -> None:
    program = program_of(total(Ops.ADD))
    first, step, result = all_of(program, Ops.STORE)
    assert first.src[1].arg == 0
    assert depths(program, Ops.STORE) == [1, 2, 1]
    assert step.src[1].op is Ops.ADD and step.src[1].src[0].op is Ops.LOAD
    assert result.src[1].op is Ops.LOAD


@pytest.mark.parametrize(
    ("op", "wanted"),
    [
        (Ops.ADD, lambda x: x.sum(0)),
        (Ops.MAX, lambda x: x.max(0)),
        (Ops.MIN, lambda x: x.min(0)),
        (Ops.MUL, lambda x: x.prod(0)),
        (Ops.MULACC, lambda x: ((x[0] * x[1] + x[1]) * x[2] + x[2]) * x[3] + x[3]),
    ],
)
def test_the_last_value_combines_all_iterations(
    op: Ops, wanted: Callable[[np.ndarray], np.ndarray]
) -> None:
    x = numbers()
    np.testing.assert_allclose(run(total(op), x), wanted(x), rtol=1e-6)


def test_stages_carried_over_a_loop_share_it() -> None:
    kept = CarriedKernel()
    one, two = kept.rows(), kept.rows()
    most = kept.stage(one, kept.scan(Ops.MAX, kept.x(one)), kept.blocks)
    least = kept.stage(two, kept.scan(Ops.MIN, kept.x(two)), kept.blocks)
    nest, x = kept.nest(most, least), numbers()
    sizes = [line.src[0].arg for line in all_of(program_of(nest), Ops.RANGE)]
    assert sizes.count(BLOCKS) == 1
    np.testing.assert_allclose(run(nest, x), x.max(0) + x.min(0), rtol=1e-6)


@pytest.mark.parametrize("op", [Ops.MAX, Exclusive(Ops.MAX)])
def test_each_iteration_can_read_carried_stages(op: Ops | Exclusive) -> None:
    kept = CarriedKernel()
    one, two = kept.rows(), kept.rows()
    now = kept.stage(one, kept.scan(op, kept.x(one)))
    value = now.index(two).load().maximum(UOp(Ops.CONST, FLOAT, (), -9.0))
    nest = kept.nest(kept.stage(two, kept.scan(Ops.ADD, value), kept.blocks))
    x = numbers(1)
    so_far = np.maximum.accumulate(x, 0)
    if isinstance(op, Exclusive):
        so_far = np.concatenate([np.full((1, ROWS), -9.0), so_far[:-1]])
    np.testing.assert_allclose(run(nest, x), so_far.sum(0), rtol=1e-6)


@pytest.mark.parametrize("amount", [2, 4, 8])
def test_carried_elements_may_be_registers_and_lanes(amount: int) -> None:
    nest = apply_opt(total(Ops.MULACC), Opt(OptOps.UPCAST, 40, amount), TARGET)
    vectors = choose_lanes(nest, TARGET)
    assert any(r.kind is AxisKind.LANE for r in axes(vectors))
    x = numbers(2)
    np.testing.assert_allclose(run(vectors, x), run(total(Ops.MULACC), x), rtol=1e-6)
