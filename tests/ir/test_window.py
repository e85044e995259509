"""Movement of a buffer is a View of its memory where strides can express it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.references.graph import evaluate

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, set_realized
from glassgrad.ir.window import file_window, window_of
from glassgrad.memory.view import View


def leaf(numbers: np.ndarray) -> UOp:
    view = View.from_host(numbers)
    return UOp(Ops.BUFFER, view.dtype, (), view)


@st.composite
def movements(draw: st.DrawFn) -> UOp:
    """A few movements of a buffer of 24 elements."""
    node = leaf(np.arange(24, dtype=np.int32).reshape(2, 3, 4))
    for _ in range(draw(st.integers(0, 4))):
        shape = node.shape
        axes = range(len(shape))
        bounds = [sorted(draw(st.tuples(*[st.integers(0, n)] * 2))) for n in shape]
        moves = {
            Ops.PERMUTE: tuple(draw(st.permutations(axes))),
            Ops.FLIP: tuple(axis for axis in axes if draw(st.booleans())),
            Ops.SHRINK: tuple([tuple(pair) for pair in bounds]),
            Ops.RESHAPE: draw(st.sampled_from([shape, (1, *shape), (int(np.prod(shape)),)])),
            Ops.EXPAND: tuple([2 if n == 1 else n for n in shape]),
        }
        if shape and shape[0] > 2:
            moves[Ops.WINDOW] = (0, draw(st.integers(1, 2)), draw(st.integers(1, 3)), 2)
        op = draw(st.sampled_from(list(moves)))
        node = UOp(op, node.dtype, (node,), moves[op])
    return node


@given(movements())
def test_a_view_shows_the_moved_elements(node: UOp) -> None:
    view = window_of(node)
    if view is None:  # only a reshape can be more than strides can say
        assert any(found.op is Ops.RESHAPE for found in node.toposort())
    else:
        assert view.shape == node.shape
        np.testing.assert_array_equal(view.numpy(), evaluate(node))


def test_elements_that_lie_nowhere_have_no_window() -> None:
    node = leaf(np.arange(6, dtype=np.int32).reshape(2, 3))
    turned = UOp(Ops.PERMUTE, node.dtype, (node,), (1, 0))
    assert window_of(UOp(Ops.RESHAPE, node.dtype, (turned,), (6,))) is None
    assert window_of(node + 1) is None
    assert window_of(UOp(Ops.PAD, node.dtype, (node,), ((0, 1), (0, 0)))) is None


def test_computed_values_have_views_too() -> None:
    node = leaf(np.arange(3, dtype=np.int32))
    more = node + 1
    set_realized(more, leaf(np.array([1, 2, 3], np.int32)))
    part = window_of(UOp(Ops.SHRINK, more.dtype, (more,), ((1, 3),)))
    assert part is not None and part.tolist() == [2, 3]


def test_items_may_be_read_as_others_of_their_size() -> None:
    node = leaf(np.array([1.0, 2.0], np.float32))
    seen = window_of(UOp(Ops.BITCAST, dtypes.int32, (node,)))
    assert seen is not None and seen.tolist() == [0x3F800000, 0x40000000]


@pytest.mark.parametrize("is_on_disk", [False, True])
def test_only_parts_of_files_are_in_a_file(is_on_disk: bool, tmp_path: Path) -> None:
    device = f"DISK:{tmp_path / 'a.bin'}" if is_on_disk else "CPU"
    view = View.empty(device, (4,), dtypes.uint8)
    node = UOp(Ops.SHRINK, view.dtype, (UOp(Ops.BUFFER, view.dtype, (), view),), ((1, 3),))
    assert (file_window(node) is not None) == is_on_disk
    assert file_window(node + 1) is None
