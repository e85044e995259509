"""Parsing of nested lists, and packing as bytes of a dtype."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassgrad.base.dtype import dtypes
from glassgrad.buffer.literal import dtype_for, pack_numbers, parse_nested


@given(st.recursive(st.integers(), lambda inner: st.lists(inner, min_size=2, max_size=2)))
def test_regular_nested_lists_are_parsed_like_numpy(data: object) -> None:
    try:
        wanted = np.array(data, dtype=object)
        is_even = not any(isinstance(item, list) for item in wanted.reshape(-1))
    except ValueError:
        is_even = False
    if not is_even:
        with pytest.raises(ValueError, match="ragged"):
            parse_nested(data)
        return
    shape, items = parse_nested(data)
    assert shape == wanted.shape
    assert items == wanted.reshape(-1).tolist()


def test_numbers_are_packed_as_their_dtype() -> None:
    assert pack_numbers([1, -1], dtypes.int16) == struct.pack("2h", 1, -1)
    assert pack_numbers([1.5, 1e300], dtypes.float32) == struct.pack("2f", 1.5, float("inf"))
    assert pack_numbers([2, 0, True], dtypes.bool) == b"\1\0\1"
    assert pack_numbers([1.0], dtypes.bfloat16) == struct.pack("f", 1.0)[2:]
    assert pack_numbers([3.0], dtypes.uint8) == b"\3"


def test_the_widest_kind_decides() -> None:
    assert dtype_for([1, 2.5], None) is dtypes.float32
    assert dtype_for([True], None) is dtypes.bool
    assert dtype_for([], None) is dtypes.float32
    assert dtype_for([1], dtypes.int8) is dtypes.int8
