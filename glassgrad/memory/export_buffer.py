"""MemoryView -> memoryview: a type with the C slot of the buffer protocol.

Before Python 3.12 no class written in Python can export a buffer, and memoryview accepts no
strides. So the type is created through the C API, with `bf_getbuffer` as its only slot.
"""

from __future__ import annotations

import ctypes
from typing import Any

from glassgrad.memory.bridge_buffer import PyBuffer
from glassgrad.memory.memory_view import MemoryView

BF_GETBUFFER = 1  # Py_bf_getbuffer of the C API
EMPTY_MEMORY = ctypes.create_string_buffer(64)  # address of empty memory


incref = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("function", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    )


class BufferExport:
    """Exports a view as long as it lives itself."""

    __slots__ = ("keep", "record", "view")

    view: MemoryView | None

    def __init__(self, view: MemoryView) -> None:
        self.view = None
        self.view = view.begin_export()
        self.record, self.keep = describe_buffer(view)

    def __del__(self) -> None:
        if self.view is not None:
            self.view.end_export()


def describe_buffer(view: MemoryView) -> tuple[PyBuffer, tuple[Any, ...]]:
    """The Py_buffer of the memory, and the objects that it points to."""
    # memoryview reads items only if their format is a single letter.
    letters = view.format if view.dtype is None else view.dtype.format or view.format
    fmt = ctypes.create_string_buffer((letters or "B").encode())
    ints: Any = ctypes.c_ssize_t * view.ndim
    shape, strides = ints(*view.shape), ints(*view.strides)
    offsets = None if view.sub_offsets is None else ints(*view.sub_offsets)
    record = PyBuffer()
    record.buf = view.data or ctypes.addressof(EMPTY_MEMORY)
    record.itemsize = view.item_size
    record.len = view.item_size
    for size in view.shape:
        record.len *= size
    record.readonly = view.readonly
    record.ndim = view.ndim
    record.format = ctypes.addressof(fmt)
    if view.ndim:
        record.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_ssize_t))
        record.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_ssize_t))
        if offsets is not None:
            record.suboffsets = ctypes.cast(offsets, ctypes.POINTER(ctypes.c_ssize_t))
    return record, (fmt, shape, strides, offsets)


def _get_buffer(exporter: Any, target: int, flags: int) -> int:
    """Fill in a Py_buffer; only memoryview calls this, and it accepts any layout."""
    ctypes.memmove(target, ctypes.addressof(exporter.record), ctypes.sizeof(PyBuffer))
    incref(exporter)
    PyBuffer.from_address(target).obj = id(exporter)
    return 0


# The C API keeps pointers to the function and to the specification forever.
_GET_BUFFER = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)(
    _get_buffer
)
_SLOTS = (_Slot * 2)(_Slot(BF_GETBUFFER, ctypes.cast(_GET_BUFFER, ctypes.c_void_p)), _Slot())
_SPEC = _Spec(b"glassgrad.memory.export_buffer.ExportedMemory", 0, 0, 1 << 18, _SLOTS)
_from_spec = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_Spec), ctypes.py_object)(
    ("PyType_FromSpecWithBases", ctypes.pythonapi)
)
ExportedMemory: Any = _from_spec(_SPEC, (BufferExport,))
# The type outlives this module at exit, and so must its function.
for _immortal in (_GET_BUFFER, ExportedMemory):
    incref(_immortal)


def export(view: MemoryView) -> memoryview:
    """A memoryview that keeps the view exported until it and all views of it are gone."""
    return memoryview(ExportedMemory(view))
