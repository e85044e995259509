"""Arrow C array -> MemoryView: a column of numbers without nulls."""

from __future__ import annotations

import ctypes
from typing import Any

from glassgrad.memory.errors import RefusedError
from glassgrad.memory.format import item_size_from_format
from glassgrad.memory.memory_view import MemoryView

FORMATS = {
    b"c": "b", b"C": "B", b"s": "h", b"S": "H", b"i": "i", b"I": "I", b"l": "q", b"L": "Q",
    b"e": "e", b"f": "f", b"g": "d",
}  # fmt: skip


class ArrowSchema(ctypes.Structure):
    """The type of a column."""

    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_char_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


class ArrowArray(ctypes.Structure):
    """The data of a column. A consumer copies the structure and sets `release` of this one to 0."""

    _fields_ = (
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", ctypes.c_void_p),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


_API = ctypes.pythonapi
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _API)
)
_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def get(obj: Any, flags: int) -> MemoryView:
    """Take the array out of its capsule; it is released with the view."""
    try:
        schema_capsule, array_capsule = obj.__arrow_c_array__()
        schema: Any = ArrowSchema.from_address(_pointer_of(schema_capsule, b"arrow_schema"))
        source = _pointer_of(array_capsule, b"arrow_array")
    except (TypeError, ValueError, RuntimeError, NotImplementedError) as error:
        raise RefusedError(f"{type(obj).__name__} failed to export its memory: {error}") from error
    fmt = FORMATS.get(schema.format)
    array: Any = ArrowArray.from_address(source)
    if fmt is None or array.n_buffers != 2 or array.dictionary or array.n_children:
        raise RefusedError(f"Arrow's type {schema.format!r} is not a plain column of numbers")
    buffers = (ctypes.c_void_p * 2).from_address(array.buffers)
    # -1 nulls means unknown; without a bitmap there are none.
    if array.null_count > 0 or (array.null_count < 0 and buffers[0]):
        raise RefusedError("the Arrow column has nulls", hint="fill them first")
    item = item_size_from_format(fmt)
    taken = ArrowArray.from_buffer_copy(array)
    array.release = None  # moved
    return MemoryView(
        obj,
        (buffers[1] or 0) + taken.offset * item,
        taken.length * item,
        readonly=True,  # Arrow arrays are immutable
        format=fmt,
        item_size=item,
        private_data=taken,
        release=release_view,
    )


def release_view(view: MemoryView, call: Any = _RELEASE) -> None:
    taken = view.private_data
    if taken.release:
        call(taken.release)(ctypes.addressof(taken))
