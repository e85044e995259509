"""One-hots are recognised through movement and casts."""

from __future__ import annotations

from support.compiler.schedules import leaf

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, const
from glassgrad.schedule.materialize.one_hot import find_one_hots

PLACES = leaf([[1], [2], [0]], "int32")
LINE = UOp(Ops.IOTA, dtypes.int32, (), 5)


def is_one_hot(node: UOp) -> bool:
    return node in find_one_hots(node.toposort())


def test_a_comparison_with_positions_is_a_one_hot() -> None:
    assert is_one_hot(LINE.eq(PLACES))
    assert is_one_hot(PLACES.eq(LINE))


def test_moved_shifted_and_cast_positions_are_positions() -> None:
    moved = UOp(Ops.RESHAPE, LINE.dtype, (LINE,), (1, 5))
    assert is_one_hot(moved.eq(PLACES))
    assert is_one_hot((LINE + 3).eq(PLACES))
    assert is_one_hot(LINE.cast(dtypes.int64).eq(PLACES.cast(dtypes.int64)))


def test_a_moved_or_cast_one_hot_is_one() -> None:
    hit = LINE.eq(PLACES)
    assert is_one_hot(UOp(Ops.PERMUTE, hit.dtype, (hit,), (1, 0)))
    assert is_one_hot(hit.cast(dtypes.float32))
    assert is_one_hot(hit.where(const(1, dtypes.int32), const(0, dtypes.int32)))


def test_other_comparisons_and_what_is_computed_from_one_hots_are_none() -> None:
    assert not is_one_hot(PLACES.eq(1))
    assert not is_one_hot(LINE < PLACES)
    assert not is_one_hot(LINE.eq(PLACES).cast(dtypes.float32) * 2.0)
    assert not is_one_hot((LINE * PLACES).eq(PLACES))
    gather_indices = UOp(Ops.GATHER, LINE.dtype, (LINE, leaf([1, 2, 0], "int32")), 0)
    assert not is_one_hot(gather_indices.eq(PLACES))
