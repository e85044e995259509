"""CACHE_READ: the footprint of a load is copied once, with the zeros of the padding."""

from __future__ import annotations

import pytest
from support.compiler.nests import GPU, binders, move, nest_of, numbers, product, same
from support.compiler.schedules import leaf, reduce

from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp
from glassgrad.loops.opts import IllegalMove, OptOps


def convolution(length: int, size: int, padding: int = 0) -> Nest:
    """y[c, o] = sum of w[c, k] * x[o + k], for three channels."""
    x, w = numbers(length), numbers(3, size)
    padded = UOp(Ops.PAD, x.dtype, (x,), ((padding, padding),))
    windows = UOp(Ops.WINDOW, x.dtype, (padded,), (0, size, 1, 1))
    weights = UOp(Ops.RESHAPE, w.dtype, (w,), (3, 1, size))
    return nest_of(reduce(windows * weights, Ops.ADD, 2))


def slot_of(nest: Nest, numel: int) -> int:
    params = [node.arg for node in binders(nest, Ops.PARAM)]
    return next(param.slot for param in params if param.numel == numel)


def test_every_element_that_is_read_is_copied_once() -> None:
    before = convolution(20, 5)
    after = move(before, OptOps.CACHE_READ, 0, slot_of(before, 20))
    (stage,) = binders(after, Ops.STAGE)
    assert stage.arg == (20,), "sixteen windows of five overlap"
    same(before, after)


def test_a_stage_would_copy_every_window() -> None:
    before = convolution(20, 5)
    (stage,) = binders(move(before, OptOps.PACK, 0, slot_of(before, 20)), Ops.STAGE)
    assert sorted(stage.arg) == [5, 16]


def test_padding_is_written_when_the_copy_is_made() -> None:
    before = convolution(20, 5, padding=2)
    after = move(before, OptOps.CACHE_READ, 0, slot_of(before, 20))
    (stage,) = binders(after, Ops.STAGE)
    assert stage.arg == (24,)
    readers = [n for n in binders(after, Ops.INDEX) if n.src[0] is stage]
    assert all(index.gate is None for index in readers)
    same(before, after)


def test_a_footprint_inside_of_an_output_loop_is_one_window_long() -> None:
    before = convolution(20, 5)
    after = move(before, OptOps.CACHE_READ, 1, slot_of(before, 20))
    (stage,) = binders(after, Ops.STAGE)
    assert stage.arg == (5,)
    same(before, after)


def test_the_axes_of_a_copy_may_have_another_order() -> None:
    before = product(6, 8, 10)
    slot = slot_of(before, 60)
    after = move(before, OptOps.CACHE_READ, 1, (slot, (1, 0)))
    (stage,) = binders(after, Ops.STAGE)
    (straight,) = binders(move(before, OptOps.CACHE_READ, 1, slot), Ops.STAGE)
    assert stage.arg == straight.arg[::-1]
    assert [r.size for r in stage.bound] == [r.size for r in straight.bound], "read as it lies"
    same(before, after)
    with pytest.raises(IllegalMove, match="not a permutation of 2 axes"):
        move(before, OptOps.CACHE_READ, 1, (slot, (1, 1)))


def test_indices_without_a_footprint_are_refused() -> None:
    nest = product(6, 8, 10)
    with pytest.raises(IllegalMove, match="no load of argument 9"):
        move(nest, OptOps.CACHE_READ, 0, 9)
    with pytest.raises(IllegalMove, match="not unrolled"):
        move(nest, OptOps.CACHE_READ, 0, 2, GPU)


def test_loaded_indices_have_no_footprint() -> None:
    x, index = numbers(20), leaf([[1, 2, 3, 4]] * 3, "int32")
    flat = UOp(Ops.RESHAPE, index.dtype, (index,), (12,))
    gathered = UOp(Ops.GATHER, x.dtype, (x, flat), 0)
    rows = UOp(Ops.RESHAPE, x.dtype, (gathered,), (3, 4))
    nest = nest_of(reduce(rows, Ops.ADD, 1))
    with pytest.raises(IllegalMove):
        move(nest, OptOps.CACHE_READ, 0, slot_of(nest, 20))
