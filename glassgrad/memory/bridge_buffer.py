"""Buffer protocol -> MemoryView: bytes, array, memoryview, mmap, ctypes, NumPy and many more."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from glassgrad.memory.errors import RefusedError
from glassgrad.memory.layout import Ints
from glassgrad.memory.memory_view import MemoryView

FULL, FULL_READONLY = 0x11D, 0x11C  # PyBUF_FULL, PyBUF_FULL_RO of the C API


class PyBuffer(ctypes.Structure):
    """CPython's Py_buffer. `format` is an address, as ctypes would copy a char pointer."""

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


# Own function objects: those of `pythonapi` are shared with others who set argtypes.
_get_buffer = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)(
    ("PyObject_GetBuffer", ctypes.pythonapi)
)
_release_buffer = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("PyBuffer_Release", ctypes.pythonapi))
_has_buffer = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object)(
    ("PyObject_CheckBuffer", ctypes.pythonapi)
)
# Py_buffer as ten words, which are read at once; readonly and ndim share the fifth.
Words: Any = ctypes.c_ssize_t * (ctypes.sizeof(PyBuffer) // ctypes.sizeof(ctypes.c_ssize_t))
_halves = struct.Struct("ii")
_word = struct.Struct("n")
_axes = [struct.Struct(f"{ndim}n") for ndim in range(65)]


def is_exporter(obj: Any) -> bool:
    return bool(_has_buffer(obj))


def get(obj: Any, flags: int) -> MemoryView:
    """The object's buffer: writable if possible, in any layout."""
    words = Words()
    try:
        _get_buffer(obj, words, FULL)
    except (BufferError, ValueError):
        try:
            _get_buffer(obj, words, FULL_READONLY)
        except (BufferError, ValueError) as error:
            raise RefusedError(
                f"{type(obj).__name__} failed to export its memory: {error}"
            ) from None
    address, _, nbytes, item_size, flags_and_ndim, fmt, shape, strides, offsets, _ = words[:]
    readonly, ndim = _halves.unpack(_word.pack(flags_and_ndim))
    return MemoryView(
        obj,
        address,
        nbytes,
        readonly=bool(readonly),
        format=ctypes.string_at(fmt).decode("latin-1") if fmt else None,
        item_size=item_size,
        shape=_ints(shape, ndim) if shape or not ndim else None,
        strides=_ints(strides, ndim) if strides else None,
        sub_offsets=_ints(offsets, ndim) if offsets else None,
        private_data=words,
        release=release_view,
    )


def _ints(address: int, ndim: int) -> Ints:
    return _axes[ndim].unpack(ctypes.string_at(address, ndim * _word.size)) if ndim else ()


def release_view(view: MemoryView, release: Any = _release_buffer) -> None:
    # Bound as a default: at exit a module's globals are cleared before its users.
    release(view.private_data)
