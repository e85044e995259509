"""Accumulators: one per register of the result, several where additions can overlap."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.nests import move, nest_of, numbers, product, row_sums
from support.compiler.programs import all_of, count, depths, program_of
from support.compiler.schedules import leaf, reduce

from glassgrad import Tensor
from glassgrad.base.config import Context
from glassgrad.base.dtype import dtypes
from glassgrad.ir.facts import identity
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.loops.opts import OptOps


def test_a_sum_is_one_accumulator_that_starts_at_zero() -> None:
    program = program_of(row_sums(4, 12))
    (acc,) = all_of(program, Ops.ACC)
    assert acc.src[0].arg == 0
    assert depths(program, Ops.ACC) == [1]
    assert depths(program, Ops.ASSIGN) == [2]


@pytest.mark.parametrize(
    ("op", "start"), [(Ops.ADD, 0), (Ops.MUL, 1), (Ops.MAX, -np.inf), (Ops.MIN, np.inf)]
)
def test_every_reduction_starts_from_its_identity(op: Ops, start: float) -> None:
    (acc,) = all_of(program_of(nest_of(reduce(numbers(4, 12), op, 1))), Ops.ACC)
    assert acc.src[0].arg == start
    assert identity(op, dtypes.float32) == start


def test_extrema_of_integers_start_from_their_bounds() -> None:
    assert identity(Ops.MAX, dtypes.int8) == -128
    assert identity(Ops.MIN, dtypes.uint8) == 255


def test_a_tile_has_an_accumulator_per_result() -> None:
    nest = move(move(product(12, 32, 10), OptOps.UPCAST, 1, 16), OptOps.UPCAST, 0, 6)
    program = program_of(nest)
    accs = all_of(program, Ops.ACC)
    assert len(accs) == 12, "six rows of two vectors"
    assert {acc.dtype for acc in accs} == {dtypes.float32.vec(8)}
    assert count(program, Ops.MULACC) == 12
    assert set(depths(program, Ops.LOAD)) == {3}
    assert count(program, Ops.LOAD) == 6 + 2, "each operand once per step"


def test_few_results_use_several_chains() -> None:
    program = program_of(move(row_sums(4, 64), OptOps.UNROLL, 1, 32))
    accs = all_of(program, Ops.ACC)
    assert len(accs) == 4
    assert {acc.dtype.count for acc in accs} == {8}
    assert count(program, Ops.GEP) == 8, "lanes are added at the end, once"
    assert set(depths(program, Ops.GEP)) == {1}


def test_a_fully_unrolled_reduction_has_no_accumulator_and_no_loop() -> None:
    program = program_of(move(row_sums(4, 6), OptOps.UNROLL, 1, 6))
    assert count(program, Ops.RANGE) == 1
    assert count(program, Ops.ASSIGN) == 0


def test_products_of_floats_are_fused_multiply_adds() -> None:
    assert count(program_of(product(4, 5, 6)), Ops.MULACC) == 1
    x = leaf(np.ones((4, 6)), "int32")
    assert count(program_of(nest_of(reduce(x * x, Ops.ADD, 1))), Ops.MULACC) == 0


def test_reductions_over_the_same_rows_share_one_loop() -> None:
    x = numbers(64, 512)
    program = program_of(nest_of(reduce(x, Ops.ADD, 1), reduce(x * x, Ops.MAX, 1)))
    assert count(program, Ops.RANGE) == 2
    assert count(program, Ops.ACC) == 2
    assert count(program, Ops.LOAD) == 1


def test_a_reduction_that_needs_another_comes_after_it() -> None:
    x = numbers(64, 512)
    top = UOp(Ops.RESHAPE, x.dtype, (reduce(x, Ops.MAX, 1),), (64, 1))
    program = program_of(nest_of(reduce(x - top, Ops.ADD, 1)))
    assert count(program, Ops.RANGE) == 3


def test_the_result_is_read_after_the_loop() -> None:
    program = program_of(row_sums(4, 12))
    (behind,) = all_of(program, Ops.AFTER)
    assert behind.src[0].op is Ops.ACC
    assert behind.src[1].op is Ops.END


def test_a_sum_of_products_with_zero_sees_infinities() -> None:
    """inf * 0 is nan: only padding is left out."""
    x = Tensor(np.full(1000, np.inf, np.float32)).realize()
    for noopt in (0, 1):
        with Context(NOOPT=noopt):
            assert np.isnan((x * 0.0).sum().item())
