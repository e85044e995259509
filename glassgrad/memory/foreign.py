"""any buffer-protocol object -> Foreign: where its elements are and how they lie; no copy."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import Any

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import FormatError

FULL, FULL_READONLY = 0x11D, 0x11C  # PyBUF_FULL, PyBUF_FULL_RO of the C API


class _PyBuffer(ctypes.Structure):
    """CPython's Py_buffer. `format` is an address: as a char pointer ctypes would copy it."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    )


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = (ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int)
_get_buffer.restype = ctypes.c_int
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = (ctypes.POINTER(_PyBuffer),)
_release_buffer.restype = None


class Lease:
    """An object's buffer, taken; given back when nobody holds the lease any more."""

    __slots__ = ("buffer", "exporter")

    def __init__(self, exporter: object) -> None:
        self.exporter: object = None
        self.buffer = _PyBuffer()
        try:
            _get_buffer(exporter, self.buffer, FULL)
        except (BufferError, ValueError):
            _get_buffer(exporter, self.buffer, FULL_READONLY)
        self.exporter = exporter

    def __del__(self) -> None:
        if self.exporter is not None:
            _release_buffer(self.buffer)


@dataclass(frozen=True)
class Foreign:
    """Somebody's elements: the address of the first one, sizes, and strides in bytes."""

    address: int
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    readonly: bool
    owner: object


def look(exporter: object) -> Foreign:
    """See an object's memory: NumPy arrays, bytes, memoryviews, arrays, ctypes, mmaps."""
    name = str(getattr(getattr(exporter, "dtype", None), "name", ""))
    if name in WITHOUT_FORMAT:
        return _look_at_bits(exporter, WITHOUT_FORMAT[name])
    try:
        lease = Lease(exporter)
    except TypeError:
        raise FormatError(
            f"{type(exporter).__name__} does not share its memory",
            hint="give a NumPy array, bytes, a memoryview or another buffer-protocol object",
        ) from None
    return _describe(lease)


def _describe(lease: Lease) -> Foreign:
    buffer = lease.buffer
    if buffer.suboffsets and any(buffer.suboffsets[axis] >= 0 for axis in range(buffer.ndim)):
        raise FormatError("rows behind pointers cannot be shared", hint="copy into one block first")
    letters = ctypes.string_at(buffer.format).decode() if buffer.format else "B"
    dtype = format_dtype(letters, buffer.itemsize)
    if buffer.shape:
        shape = tuple(buffer.shape[: buffer.ndim])
    else:  # one element, or a flat block of them
        shape = () if buffer.ndim == 0 else (buffer.len // buffer.itemsize,)
    strides = tuple(buffer.strides[: buffer.ndim]) if buffer.strides else _row_major(shape, dtype)
    return Foreign(buffer.buf or 0, dtype, shape, strides, bool(buffer.readonly), lease)


def _row_major(shape: tuple[int, ...], dtype: DType) -> tuple[int, ...]:
    strides, step = [], dtype.itemsize
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


# ml_dtypes' names for the dtypes that PEP 3118 has no letter for.
WITHOUT_FORMAT = {
    "bfloat16": dtypes.bfloat16,
    "float8_e4m3fn": dtypes.fp8e4m3,
    "float8_e5m2": dtypes.fp8e5m2,
}


def _look_at_bits(exporter: Any, dtype: DType) -> Foreign:
    """An array of a dtype without a format letter, seen as unsigned integers of its size."""
    bits = look(exporter.view(f"u{dtype.itemsize}"))
    return Foreign(bits.address, dtype, bits.shape, bits.strides, bits.readonly, bits.owner)


KINDS = (
    dict.fromkeys("bhilqn", "int")
    | dict.fromkeys("BHILQNc", "uint")
    | dict.fromkeys("efd", "float")
)
KINDS["?"] = "bool"
BY_KIND: dict[tuple[str, int], DType] = {
    (dtype.kind, dtype.itemsize): dtype
    for dtype in (dtypes.bool, *dtypes.ints, dtypes.float16, dtypes.float32, dtypes.float64)
}


def format_dtype(letters: str, itemsize: int) -> DType:
    """The dtype of a PEP 3118 format: one letter, and a byte order that is this machine's."""
    order, letter = (letters[0], letters[1:]) if letters[:1] in "@=<>!" else ("@", letters)
    native = order in ("@", "=", "<" if sys.byteorder == "little" else ">") or itemsize == 1
    dtype = BY_KIND.get((KINDS.get(letter, ""), itemsize))
    if dtype is None or not native:
        raise FormatError(
            f"elements of format {letters!r} ({itemsize} bytes) have no dtype here",
            hint="convert them to a number type in this machine's byte order first",
        )
    return dtype
