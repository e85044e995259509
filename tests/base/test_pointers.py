"""Buffers and addresses."""

import array
import ctypes

from glassgrad.base.pointers import flat_mv, from_mv, mv_address, to_mv


def test_memory_is_shared_through_an_address():
    data = bytearray(b"glass")
    seen = to_mv(mv_address(memoryview(data)), len(data))
    seen[0] = ord("G")
    assert data == b"Glass"


def test_ctypes_arrays_share_memory():
    data = array.array("i", [1, 2, 3])
    shared = from_mv(memoryview(data), ctypes.c_int)
    shared[1] = 20
    assert list(data) == [1, 20, 3]
    assert len(from_mv(memoryview(data))) == 12


def test_an_empty_buffer_has_address_zero():
    assert mv_address(memoryview(bytearray())) == 0


def test_any_shape_becomes_bytes():
    view = memoryview(bytearray(range(6))).cast("B", shape=[2, 3])
    assert flat_mv(view).tolist() == [0, 1, 2, 3, 4, 5]
    assert flat_mv(memoryview(array.array("h", [1]))).tolist() == [1, 0]
    assert flat_mv(memoryview(bytearray())).nbytes == 0
