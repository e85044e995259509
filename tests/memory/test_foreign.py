"""Other libraries' memory is seen where it lies."""

import array
import ctypes
import mmap
import sys

import numpy as np
import pytest

from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import FormatError
from glassgrad.memory.foreign import look


@pytest.mark.parametrize(
    ("exporter", "dtype"),
    [
        (b"abc", dtypes.uint8),
        (bytearray(5), dtypes.uint8),
        (array.array("d", [1, 2]), dtypes.float64),
        (array.array("l", [1]), dtypes.int64 if array.array("l").itemsize == 8 else dtypes.int32),
        (memoryview(b"12345678").cast("i"), dtypes.int32),
        ((ctypes.c_float * 3)(), dtypes.float32),
        (mmap.mmap(-1, 16), dtypes.uint8),
        (np.zeros(3, np.float16), dtypes.float16),
        (np.zeros(3, bool), dtypes.bool),
    ],
)
def test_every_exporter_is_described(exporter: object, dtype: object) -> None:
    foreign = look(exporter)
    assert foreign.dtype is dtype
    assert foreign.shape == (len(exporter),)  # type: ignore[arg-type]
    assert foreign.strides == (foreign.dtype.itemsize,)


def test_only_what_may_be_written_is_writable() -> None:
    assert look(b"abc").readonly
    assert not look(bytearray(b"abc")).readonly
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    assert look(frozen).readonly


def test_the_owner_lives_as_long_as_the_view_of_it() -> None:
    exporter = bytearray(b"abc")
    foreign = look(exporter)
    with pytest.raises(BufferError):
        exporter.append(1)  # exported memory cannot be resized
    del foreign
    exporter.append(1)


def test_an_exporter_is_not_leaked() -> None:
    exporter = bytearray(b"abc")
    before = sys.getrefcount(exporter)
    for _ in range(10):
        look(exporter)
    assert sys.getrefcount(exporter) == before


def test_what_has_no_dtype_is_refused() -> None:
    with pytest.raises(FormatError, match="have no dtype here"):
        look(np.zeros(2, np.complex128))
    with pytest.raises(FormatError, match="have no dtype here"):
        look(np.zeros(2, np.dtype(">f4") if sys.byteorder == "little" else np.dtype("<f4")))
    with pytest.raises(FormatError, match="does not share its memory"):
        look([1, 2, 3])
