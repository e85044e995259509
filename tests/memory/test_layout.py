"""Contiguity and indices agree with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassgrad.base.errors import AxisError
from glassgrad.memory.layout import (
    contiguous_strides,
    extent,
    is_column_major,
    is_row_major,
    wrap_indices,
)

SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@given(SHAPES.filter(lambda shape: 0 not in shape), st.booleans())
def test_contiguous_strides_are_those_of_numpy(shape: tuple[int, ...], row_major: bool) -> None:
    array = np.zeros(shape, np.float64, order="C" if row_major else "F")
    strides = contiguous_strides(shape, 8, row_major)
    assert [s for s, n in zip(strides, shape) if n != 1] == [
        s for s, n in zip(array.strides, shape) if n != 1
    ]


@given(SHAPES, st.data())
def test_contiguity_is_that_of_numpy(shape: tuple[int, ...], data: st.DataObject) -> None:
    array = np.zeros(shape, np.int32)
    array = array.transpose(data.draw(st.permutations(range(len(shape)))))
    steps = [data.draw(st.sampled_from([1, 1, 2, -1])) for _ in shape]
    array = array[(*(slice(None, None, step) for step in steps), ...)]
    assert is_row_major(array.shape, array.strides, 4) == array.flags.c_contiguous
    assert is_column_major(array.shape, array.strides, 4) == array.flags.f_contiguous


def test_the_extent_is_the_distance_to_the_lowest_and_highest_element() -> None:
    assert extent((3, 4), (4, 1)) == (0, 11)
    assert extent((3, 4), (-4, 1)) == (8, 3)
    assert extent((), ()) == (0, 0)


def test_indices_wrap_once_and_are_checked() -> None:
    assert wrap_indices((-1, 0), (3, 2)) == (2, 0)
    with pytest.raises(AxisError, match="index 3 is out of range for axis 0 of size 3"):
        wrap_indices((3,), (3,))
    with pytest.raises(AxisError, match="index -4 is out of range"):
        wrap_indices((-4,), (3,))
    assert wrap_indices([np.int64(1)], (3,)) == (1,)
    with pytest.raises(AxisError, match="a float is not an index"):
        wrap_indices((1.0,), (3,))
    with pytest.raises(AxisError, match="2 indices were given for 1 axes"):
        wrap_indices((0, 0), (3,))
