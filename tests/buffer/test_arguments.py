"""Shapes, axes and indices as arguments of Buffer methods."""

from __future__ import annotations

import pytest

from glassgrad.base.errors import AxisError, ShapeError
from glassgrad.buffer.arguments import axes_of, index_window, infer_shape, order_of, shape_of
from glassgrad.memory.window import Window

ROWS = Window((2, 3), (3, 1), 0)


def test_ints_drop_an_axis_and_slices_keep_it() -> None:
    assert index_window(ROWS, (1, slice(None, None, -1))) == Window((3,), (-1,), 5)
    assert index_window(ROWS, (Ellipsis, 0)) == Window((2,), (3,), 0)


def test_an_order_names_every_axis_once() -> None:
    assert order_of((-1, 0), 2) == (1, 0)
    for bad in ((0,), (0, 0), (0, 1, 1)):
        with pytest.raises(AxisError, match="is no order of 2 axes"):
            order_of(bad, 2)


def test_sizes_and_axes_must_be_ints() -> None:
    assert shape_of(3) == (3,) and shape_of([2, 3]) == (2, 3)
    assert infer_shape((2, -1), 6) == (2, 3)
    assert axes_of((-1, 0), 2) == (0, 1) and axes_of(None, 2) == (0, 1)
    for bad in (True, 1.0, "1"):
        with pytest.raises(ShapeError, match="whole number"):
            shape_of(bad)
        with pytest.raises(AxisError, match="whole number"):
            axes_of(bad, 2)
    with pytest.raises(ShapeError, match="do not fill"):
        infer_shape((-1, -1), 6)
    with pytest.raises(ShapeError, match="do not fill"):
        infer_shape((0, -1), 6)
