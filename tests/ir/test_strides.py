"""Strides: how far a step of a loop moves through memory."""

from __future__ import annotations

from hypothesis import given, settings
from support.compiler.index_expressions import RANGES, everywhere, expressions, memory, value_of

from glassgrad.base.dtype import dtypes
from glassgrad.ir.divmod import floordiv
from glassgrad.ir.linear import add, scale
from glassgrad.ir.ops import Ops
from glassgrad.ir.strides import stride, strides_of, written_stride
from glassgrad.ir.uop import UOp, const

ROWS, COLUMNS = RANGES[2], RANGES[3]
ONE = const(1.0, dtypes.float32)


@settings(max_examples=150)
@given(expressions(), expressions())
def test_a_stride_is_the_distance_between_any_two_steps(row: UOp, column: UOp) -> None:
    index = memory(100, 7).index(row, column)
    for axis in RANGES:
        distance = stride(index, axis)
        if distance is None:
            continue
        for at in everywhere():
            if at[axis] + 1 < axis.size:
                places = [
                    7 * value_of(row, now) + value_of(column, now) for now in _steps(at, axis)
                ]
                assert places[1] - places[0] == distance


def _steps(at: dict[UOp, int], axis: UOp) -> list[dict[UOp, int]]:
    return [at, {**at, axis: at[axis] + 1}]


def test_nonlinear_indices_have_no_stride() -> None:
    index = memory(8).index(floordiv(add(ROWS, COLUMNS), 2))
    assert stride(index, ROWS) is None
    assert stride(index, RANGES[0]) == 0


def test_stores_and_stages_have_the_strides_of_their_buffer() -> None:
    store = UOp(Ops.STORE, dtypes.void, (memory(4, 5).index(ROWS, COLUMNS), ONE, ROWS, COLUMNS))
    stage = UOp(Ops.STAGE, ONE.dtype, (ONE, COLUMNS, ROWS, ROWS, COLUMNS), (5, 4))
    assert strides_of(store) == (5, 1) and strides_of(stage) == (4, 1)
    assert [written_stride(store, r) for r in (ROWS, COLUMNS)] == [5, 1]
    assert [written_stride(stage, r) for r in (ROWS, COLUMNS)] == [1, 4]
    assert stride(store.index(COLUMNS, scale(ROWS, 2)), ROWS) == 2
