"""ACCUMULATE: sums in the output buffer, several rows of the input at a time."""

from __future__ import annotations

import pytest
from support.compiler.nests import binders, kinds, loops, move, nest_of, numbers, same
from support.compiler.schedules import reduce

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp
from glassgrad.loops.opts import IllegalMove, OptOps


def column_sums(rows: int, columns: int, op: Ops = Ops.ADD) -> Nest:
    return nest_of(reduce(numbers(rows, columns) + 1.0, op, 0))


@pytest.mark.parametrize("op", [Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN])
def test_a_store_of_nothing_and_a_store_that_adds_rows(op: Ops) -> None:
    before = column_sums(12, 5, op)
    after = move(before, OptOps.ACCUMULATE, 1, 4)
    cleared, more = after.body.src
    assert cleared.arg is None and cleared.src[1].is_const
    assert more.arg is op
    assert [r.size for r in more.bound] == [3, 5], "rows, then along a row"
    assert after.may_alias
    same(before, after)


def test_the_loop_along_a_row_is_the_innermost_one() -> None:
    after = move(column_sums(12, 5), OptOps.ACCUMULATE, 1, 4)
    assert loops(after.outer) == []
    assert sorted(kinds(after)[AxisKind.LOOP]) == [5, 5]


@pytest.mark.parametrize("amount", [1, 5, 12])
def test_rows_come_in_parts_that_divide_them(amount: int) -> None:
    with pytest.raises(IllegalMove, match="do not evenly divide 12"):
        move(column_sums(12, 5), OptOps.ACCUMULATE, 1, amount)


def test_the_epilogue_of_a_sum_comes_last() -> None:
    x, bias = numbers(12, 5), numbers(5)
    before = nest_of(reduce(x, Ops.ADD, 0) * 2.0 + bias)
    after = move(before, OptOps.ACCUMULATE, 1, 4)
    assert [store.arg for store in after.body.src] == [None, Ops.ADD, None]
    assert [r.size for r in after.body.src[2].bound] == [5]
    same(before, after)


def test_a_store_of_the_sum_itself_holds_it() -> None:
    total = reduce(numbers(12, 5), Ops.ADD, 0)
    before = nest_of(total, total * 2.0)
    after = move(before, OptOps.ACCUMULATE, 1, 4)
    zero, more, double = after.body.src
    assert zero.src[0].src[0] is more.src[0].src[0] is not double.src[0].src[0]
    same(before, after)


def test_only_one_sum_is_accumulated() -> None:
    x = numbers(12, 5)
    two = nest_of(reduce(x, Ops.ADD, 0) * reduce(x, Ops.MAX, 0))
    with pytest.raises(IllegalMove, match="more than one reduction"):
        move(two, OptOps.ACCUMULATE, 1, 4)
    with pytest.raises(IllegalMove, match="more than one reduction"):
        move(column_sums(12, 5), OptOps.ACCUMULATE, 0, 4)
    once = move(column_sums(16, 5), OptOps.ACCUMULATE, 1, 8)
    with pytest.raises(IllegalMove, match="in order"):
        move(once, OptOps.ACCUMULATE, 1, 2)


def test_a_narrow_result_has_no_room_for_a_wide_sum() -> None:
    narrow = nest_of(reduce(numbers(12, 5), Ops.ADD, 0).cast(dtypes.int16))
    with pytest.raises(IllegalMove, match="dtype of the sum"):
        move(narrow, OptOps.ACCUMULATE, 1, 4)


def test_rows_are_unrolled_behind_it() -> None:
    before = column_sums(16, 8)
    after = move(before, OptOps.ACCUMULATE, 1, 8)
    (rows,) = binders(after, Ops.REDUCE)
    unrolled = move(after, OptOps.UNROLL, rows.bound[0].axis, 8)
    assert kinds(unrolled)[AxisKind.UNROLL] == [8]
    same(before, unrolled)


def test_a_sum_with_no_loop_around_it_stays() -> None:
    whole = nest_of(reduce(numbers(64), Ops.ADD, 0))
    with pytest.raises(IllegalMove, match="no shared loop"):
        move(whole, OptOps.ACCUMULATE, 0, 8)


def test_every_store_of_the_sum_is_written_not_only_the_one_that_holds_it() -> None:
    total = reduce(numbers(12, 5), Ops.ADD, 0)
    before = nest_of(total, UOp(Ops.RESHAPE, dtypes.float32, (total,), (1, 5)))
    after = move(before, OptOps.ACCUMULATE, 1, 4)
    assert [store.arg for store in after.body.src] == [None, Ops.ADD, None]
    same(before, after)
