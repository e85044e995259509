"""PACK: what a loop reads of a buffer is copied into scratch first."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.nests import GPU, added, binders, kinds, move, nest_of, numbers, product, same
from support.compiler.schedules import assign, leaf, reduce

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.uop import UOp
from glassgrad.loops.moves import pack as staging
from glassgrad.loops.moves.table import apply_opt
from glassgrad.loops.opts import IllegalMove, OptOps


def test_the_whole_operand_is_staged_outside_of_the_loops_that_read_it() -> None:
    before = product(6, 8, 10)
    after = move(before, OptOps.PACK, 0, 2)
    (stage,) = binders(after, Ops.STAGE)
    assert sorted(stage.arg) == [8, 10]
    assert not stage.ranges, "it depends on no row, so it is filled once"
    same(before, after)


def test_a_row_is_staged_inside_of_the_loop_over_rows() -> None:
    before = product(6, 8, 10)
    after = move(before, OptOps.PACK, 0, 1)
    (stage,) = binders(after, Ops.STAGE)
    assert stage.arg == (10,)
    assert [r.axis for r in stage.ranges] == [0]
    same(before, after)


def test_registers_lie_next_to_each_other_in_scratch() -> None:
    before = product(6, 16, 10)
    tiled = move(before, OptOps.UPCAST, 1, 8)
    after = move(tiled, OptOps.PACK, 1, 2)
    (stage,) = binders(after, Ops.STAGE)
    assert stage.arg == (10, 8), "depth, then the columns of the tile"
    assert kinds(after)[AxisKind.UPCAST] == [8, 8]
    same(before, after)


def test_one_of_two_access_patterns_of_an_argument_can_be_packed() -> None:
    """x @ x.T: rows of the result read it along their own axis, columns along theirs."""
    x = numbers(6, 10)
    left, right = [UOp(Ops.RESHAPE, x.dtype, (x,), shape) for shape in ((6, 1, 10), (1, 6, 10))]
    before = nest_of(reduce(left * right, Ops.ADD, 2))
    assert len(binders(move(before, OptOps.PACK, 0, 1), Ops.STAGE)) == 2, "a row, and all of it"
    after = move(before, OptOps.PACK, 0, (1, 1))
    (stage,) = binders(after, Ops.STAGE)
    assert sorted(stage.arg) == [6, 10]
    same(before, after)
    with pytest.raises(IllegalMove, match="no load of argument 1"):
        move(before, OptOps.PACK, 0, (1, 7))


def test_staging_twice_gives_two_scratches() -> None:
    before = product(6, 8, 10)
    after = move(move(before, OptOps.PACK, 0, 2), OptOps.PACK, 1, 1)
    assert len(binders(after, Ops.STAGE)) == 2
    same(before, after)


def test_errors_say_why_a_value_cannot_be_staged() -> None:
    nest = product(6, 8, 10)
    with pytest.raises(IllegalMove, match="kernel writes argument 0"):
        move(nest, OptOps.PACK, 0, 0)
    with pytest.raises(IllegalMove, match="no load of argument 9"):
        move(nest, OptOps.PACK, 0, 9)
    with pytest.raises(IllegalMove, match="no load of argument 1"):
        move(added(4, 6), OptOps.PACK, 1, 1)
    with pytest.raises(IllegalMove, match="not unrolled"):
        move(nest, OptOps.PACK, 0, 2, GPU)
    with pytest.raises(IllegalMove, match="not unrolled"):
        move(move(nest, OptOps.UPCAST, 1, 4), OptOps.PACK, 3, 2)


def test_a_buffer_that_is_rewritten_is_not_staged() -> None:
    x = numbers(4, 6)
    nest = nest_of(assign(x, x + 1.0))
    with pytest.raises(IllegalMove, match="kernel writes"):
        move(nest, OptOps.PACK, 0, 0)


def test_scratch_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    apply_opt.cache_clear()  # the move was legal before
    monkeypatch.setattr(staging, "MAX_SCRATCH_BYTES", 79 * 4)
    with pytest.raises(IllegalMove, match="80 elements exceed 316 bytes of scratch"):
        move(product(6, 8, 10), OptOps.PACK, 0, 2)


@pytest.mark.parametrize("op", [OptOps.PACK, OptOps.CACHE_READ])
def test_elements_that_are_only_converted_are_packed_converted(op: OptOps) -> None:
    narrow = leaf(np.arange(48.0).reshape(6, 8), "float16")
    wide = UOp(Ops.CAST, dtypes.float32, (narrow,))
    turned = UOp(Ops.PERMUTE, dtypes.float32, (wide,), (1, 0))
    before = nest_of(turned + 1.0)
    after = move(before, op, 0, 1)
    (kept,) = binders(after, Ops.STAGE)
    assert kept.dtype is dtypes.float32 and kept.src[0].op is Ops.CAST
    same(before, after)


def test_elements_with_another_reader_are_packed_unconverted() -> None:
    narrow = leaf(np.arange(48.0).reshape(6, 8), "float16")
    wide = UOp(Ops.CAST, dtypes.float32, (narrow + narrow,)) + UOp(
        Ops.CAST, dtypes.float32, (narrow,)
    )
    after = move(nest_of(UOp(Ops.PERMUTE, dtypes.float32, (wide,), (1, 0))), OptOps.PACK, 0, 1)
    assert [kept.dtype for kept in binders(after, Ops.STAGE)] == [dtypes.float16]


def test_elements_that_become_indices_are_packed_unconverted() -> None:
    x, at = numbers(7, 5), leaf([[6, 0, 2, 1, 1]] * 3, "int32")
    before = nest_of(UOp(Ops.GATHER, x.dtype, (x, at), 0))
    slot = next(n.arg.slot for n in binders(before, Ops.PARAM) if n.dtype is dtypes.int32)
    after = move(before, OptOps.PACK, before.outer[0].axis, slot)
    assert [kept.dtype for kept in binders(after, Ops.STAGE)] == [dtypes.int32]
    same(before, after)
