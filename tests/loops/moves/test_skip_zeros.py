"""SKIP_ZEROS: which steps of a sum are skipped, and that they add only zeros."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.compiler.nests import binders, kernel_of, move, product, refused, same
from support.compiler.programs import TARGET, program_of
from support.compiler.schedules import memory

from glassgrad import Tensor
from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.reindex import reindex
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp, const
from glassgrad.loops import optimize
from glassgrad.loops.moves.skip_zeros import fraction_unmasked
from glassgrad.loops.nest import axes
from glassgrad.loops.opts import IllegalMove, OptOps

MANY_REGISTERS = replace(TARGET, registers=32, vector_bytes=64)


def convolution(size: int, window: int, padding: int, stride: int = 1, dilation: int = 1) -> Nest:
    """One row of an image and one window: an axis of positions, and an axis of steps."""
    x, w = memory(1, 1, size, 1), memory(2, 1, window, 1)
    kernel = kernel_of(x.conv2d(w, padding=(padding, 0), stride=stride, dilation=dilation))
    return Nest(kernel.body, kernel.outer, kernel.may_alias)


def steps_of(nest: Nest) -> UOp:
    (found,) = [axis for axis in axes(nest) if axis.kind is AxisKind.REDUCE]
    return found


def places_of(nest: Nest) -> int:
    """The number of the axis that shares an index with the steps."""
    steps = steps_of(nest)
    found = [n for n in nest.body.toposort() if n.op is Ops.INDEX and n.gate is not None]
    (place,) = {r for index in found for r in index.ranges} - {steps}
    return place.axis


def counts(size: UOp) -> list[int]:
    """How often a loop runs, for every step of the one around it."""
    (place,) = size.ranges
    return [reindex(size, {place: const(i)}).arg for i in range(place.size)]


def test_a_loop_covers_only_unmasked_steps() -> None:
    before = convolution(9, 3, 1)
    after = move(before, OptOps.SKIP_ZEROS, steps_of(before).axis)
    assert counts(steps_of(after).src[0]) == [2, 3, 3, 3, 3, 3, 3, 3, 2]
    same(before, after)


def test_a_tile_runs_the_steps_that_some_pixel_needs() -> None:
    before = convolution(9, 4, 3)
    tiled = move(before, OptOps.UPCAST, places_of(before), 2)
    after = move(tiled, OptOps.SKIP_ZEROS, steps_of(tiled).axis)
    assert counts(steps_of(after).src[0]) == [2, 4, 4, 4, 4, 2]
    same(before, after)


def test_fully_masked_steps_are_removed() -> None:
    before = convolution(2, 3, 4)
    after = move(before, OptOps.SKIP_ZEROS, steps_of(before).axis)
    assert counts(steps_of(after).src[0]) == [0, 0, 1, 2, 2, 1, 0, 0]
    same(before, after)


@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 6), st.integers(1, 3), st.data())
def test_no_value_changes(size: int, window: int, padding: int, stride: int, data: st.DataObject):
    dilation = data.draw(st.integers(1, 3))
    if size + 2 * padding < dilation * (window - 1) + 1:
        return
    before = nest = convolution(size, window, padding, stride, dilation)
    loops = [axis for axis in axes(nest) if axis.kind is AxisKind.LOOP]
    try:
        for axis in loops:
            amount = data.draw(st.integers(1, axis.size))
            nest = move(nest, OptOps.UPCAST, axis.axis, amount) if amount > 1 else nest
        for axis in [axis for axis in axes(nest) if axis.kind is AxisKind.REDUCE]:
            nest = move(nest, OptOps.SKIP_ZEROS, axis.axis)
    except IllegalMove:
        pass
    same(before, nest)


def test_unrolled_steps_are_skipped_one_by_one() -> None:
    before = convolution(7, 3, 1)
    nest = move(before, OptOps.UPCAST, places_of(before), 7)
    nest = move(nest, OptOps.SKIP_ZEROS, steps_of(nest).axis)
    same(before, nest)
    program = program_of(move(nest, OptOps.UNROLL, steps_of(nest).axis, 3))
    loads = [line for line in program.uops if line.op is Ops.LOAD]
    assert not [line for line in loads if line.src[0].gate is not None]


def test_sums_without_a_mask_are_refused() -> None:
    nest = product(4, 5, 6)
    why = "no step of this axis is known to add only zeros"
    assert refused(nest, OptOps.SKIP_ZEROS, steps_of(nest).axis) == why


def products_of(size: int) -> int:
    """How many products the inner loop of a 3x3 convolution has, for a number of pixels per row."""
    x, w = memory(8, 64, size, size), memory(64, 64, 3, 3)
    nest = optimize(kernel_of(x.conv2d(w, padding=1)), MANY_REGISTERS)
    (reduce,) = binders(nest, Ops.REDUCE)
    assert not reduce.bound[0].src[0].is_const, "rows of the window are left out"
    return len([line for line in program_of(nest).uops if line.op is Ops.MULACC])


def test_short_rows_are_tiles_that_leave_columns_out() -> None:
    assert products_of(7) == (3 * 7 - 2) * 2
    assert products_of(14) == 3 * 14 - 2


@pytest.mark.parametrize("padding", [0, 1, 2, 3, 5])
@pytest.mark.parametrize(("size", "kernel"), [(7, 3), (5, 2), (14, 3), (12, 5), (3, 3)])
def test_convolutions_with_neighbouring_ops_are_right(size: int, kernel: int, padding: int) -> None:
    rng = np.random.default_rng(size * kernel + padding)
    x = rng.standard_normal((2, 8, size, size)).astype(np.float32)
    w = rng.standard_normal((32, 8, kernel, kernel)).astype(np.float32)
    wide = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, (kernel, kernel), (2, 3))
    want = np.einsum("bcyxij,ocij->boyx", windows, w)
    got = Tensor(x).conv2d(Tensor(w), padding=padding).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("size", "padding", "seen"), [(7, 1, 19 / 21), (14, 1, 40 / 42), (7, 0, 1)]
)
def test_the_fraction_of_unmasked_steps(size: int, padding: int, seen: float) -> None:
    nest = convolution(size, 3, padding)
    loads = [node.src[0] for node in nest.body.toposort() if node.op is Ops.LOAD]
    (image,) = [index for index in loads if index.src[0].arg.slot == 1]
    assert fraction_unmasked(image, steps_of(nest)) == pytest.approx(seen)
