"""Reductions without a loop: the same value, and no REDUCE left."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.compiler.schedules import leaf, reduce, right
from support.references.kernel import run_kernel

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Kernel, Param
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.schedule.kernels.reduction_elimination import eliminate_reduction

ROW = make_range(0, 6)
R = make_range(1, 10, AxisKind.REDUCE)
S = make_range(2, 4, AxisKind.REDUCE)
TABLE = UOp(Ops.PARAM, dtypes.float32, (), Param(1, (10,), (1,)))
PLACES = UOp(Ops.PARAM, dtypes.int32, (), Param(2, (6,), (1,)))
ZERO = const(0, dtypes.float32)
PLACE = PLACES.index(ROW).load()


def summed(body: UOp, *ranges: UOp, op: Ops = Ops.ADD) -> UOp:
    return UOp(Ops.REDUCE, body.dtype, (body, *ranges), op)


def run(value: UOp, indices: list[int]) -> np.ndarray:
    """The value with each of six indices."""
    out = UOp(Ops.PARAM, value.dtype, (), Param(0, (6,), (1,)))
    store = UOp(Ops.STORE, dtypes.void, (out.index(ROW), value, ROW))
    kernel = Kernel(UOp(Ops.SINK, dtypes.void, (store,)), (ROW,))
    result = np.zeros(6, "float32" if value.dtype is dtypes.float32 else "int32")
    run_kernel(kernel, [result, np.arange(1, 11).astype("float32"), np.array(indices, "int32")])
    return result


def has_loop(value: UOp) -> bool:
    return any(node.op is Ops.REDUCE for node in value.toposort())


def position(offset: int = 0, dtype: DType = dtypes.int32) -> UOp:
    return (R + offset if offset else R).cast(dtype)


def test_a_sum_of_a_constant_is_a_product() -> None:
    assert eliminate_reduction(summed(PLACE, R)) is PLACE * 10


def test_the_largest_of_a_constant_is_the_constant() -> None:
    assert eliminate_reduction(summed(PLACE, R, op=Ops.MAX)) is PLACE
    assert eliminate_reduction(summed(PLACE, R, op=Ops.MIN)) is PLACE


def test_a_product_of_a_constant_is_left_alone() -> None:
    node = summed(PLACE, R, op=Ops.MUL)
    assert eliminate_reduction(node) is node


def test_only_the_range_that_is_not_seen_goes() -> None:
    found = eliminate_reduction(summed(TABLE.index(R).load(), R, S))
    assert found.op is Ops.REDUCE and found.bound == (R,)


def test_anything_but_a_reduction_is_returned() -> None:
    assert eliminate_reduction(PLACE) is PLACE


SELECTIONS = {
    "where": lambda hit, x: hit.where(x, ZERO),
    "cast times x": lambda hit, x: hit.cast(dtypes.float32) * x,
    "x times cast": lambda hit, x: x * hit.cast(dtypes.float32),
    "where(1, 0) times x": lambda hit, x: hit.where(const(1, x.dtype), ZERO) * x,
    "cast of where(1, 0)": lambda hit, x: (
        hit.where(const(1, dtypes.int32), const(0, dtypes.int32)).cast(dtypes.float32) * x
    ),
    "two factors": lambda hit, x: hit.where(x, ZERO) * x,
}


@pytest.mark.parametrize("how", SELECTIONS)
@pytest.mark.parametrize("is_turned", [False, True])
@given(
    indices=st.lists(st.integers(-3, 14), min_size=6, max_size=6),
    offset=st.integers(-2, 5),
)
def test_a_one_hot_sum_becomes_a_lookup(
    how: str, is_turned: bool, indices: list[int], offset: int
) -> None:
    sides = (position(offset), PLACE)
    hit = UOp(Ops.CMPEQ, dtypes.bool, sides[::-1] if is_turned else sides)
    node = summed(SELECTIONS[how](hit, TABLE.index(R).load()), R)
    found = eliminate_reduction(node)
    assert not has_loop(found)
    np.testing.assert_array_equal(run(found, indices), run(node, indices))


def test_counting_matches_needs_no_loop() -> None:
    node = summed(position().eq(PLACE).cast(dtypes.int32), R)
    found = eliminate_reduction(node)
    assert not has_loop(found)
    np.testing.assert_array_equal(run(found, [0, 9, 10, -1, 3, 3]), [1, 1, 0, 0, 1, 1])


@pytest.mark.parametrize(
    "condition",
    [position().eq((R * 2).cast(dtypes.int32)), (R * 2).cast(dtypes.int32).eq(PLACE)],
    ids=["both sides move", "every second position"],
)
def test_masks_of_several_positions_keep_their_loop(condition: UOp) -> None:
    node = summed(condition.where(TABLE.index(R).load(), ZERO), R)
    assert eliminate_reduction(node) is node


def test_a_largest_value_is_no_lookup() -> None:
    node = summed(position().eq(PLACE).where(TABLE.index(R).load(), ZERO), R, op=Ops.MAX)
    assert eliminate_reduction(node) is node


def test_a_nonzero_alternative_is_no_lookup() -> None:
    node = summed(position().eq(PLACE).where(TABLE.index(R).load(), const(1, ZERO.dtype)), R)
    assert eliminate_reduction(node) is node


def test_positions_that_wrap_around_are_found_twice() -> None:
    """300 positions as uint8: 1 stands at 1 and at 257."""
    table, wanted = leaf(np.arange(1.0, 301.0)), leaf([[1], [44], [43], [200]], "uint8")
    line = UOp(Ops.IOTA, dtypes.uint8, (), 300)
    hit = UOp(Ops.CMPEQ, dtypes.bool, (line, wanted))
    right([reduce(hit.where(table, ZERO), Ops.ADD, 1)])
