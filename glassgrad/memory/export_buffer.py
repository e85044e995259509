"""MemoryView -> memoryview: a type of our own with the C slot of the buffer protocol.

Before Python 3.12 no class written in Python can export a buffer, and memoryview cannot be told
strides. So the type is made through the C API, with `bf_getbuffer` as its one slot.
"""

from __future__ import annotations

import ctypes
from typing import Any

from glassgrad.memory.bridge_buffer import PyBuffer
from glassgrad.memory.memory_view import MemoryView

BF_GETBUFFER = 1  # Py_bf_getbuffer of the C API
NOWHERE = ctypes.create_string_buffer(64)  # what an empty memory without an address points at


hold = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))


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


class Loan:
    """Lends a view for as long as it lives itself."""

    __slots__ = ("keep", "record", "view")

    view: MemoryView | None

    def __init__(self, view: MemoryView) -> None:
        self.view = None
        self.view = view.lend()
        self.record, self.keep = described(view)

    def __del__(self) -> None:
        if self.view is not None:
            self.view.returned()


def described(view: MemoryView) -> tuple[PyBuffer, tuple[Any, ...]]:
    """CPython's description of the memory, and what must live as long as it does."""
    # memoryview reads items only if their format is one letter.
    letters = view.format if view.dtype is None else view.dtype.format or view.format
    fmt = ctypes.create_string_buffer((letters or "B").encode())
    ints: Any = ctypes.c_ssize_t * view.ndim
    shape, strides = ints(*view.shape), ints(*view.strides)
    offsets = None if view.sub_offsets is None else ints(*view.sub_offsets)
    record = PyBuffer()
    record.buf = view.data or ctypes.addressof(NOWHERE)
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


def _get_buffer(loan: Any, target: int, flags: int) -> int:
    """Fill in a Py_buffer; only memoryview asks, and it takes everything."""
    ctypes.memmove(target, ctypes.addressof(loan.record), ctypes.sizeof(PyBuffer))
    hold(loan)
    PyBuffer.from_address(target).obj = id(loan)
    return 0


# The C API keeps the address of the function and of the specification for ever.
_GET_BUFFER = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)(
    _get_buffer
)
_SLOTS = (_Slot * 2)(_Slot(BF_GETBUFFER, ctypes.cast(_GET_BUFFER, ctypes.c_void_p)), _Slot())
_SPEC = _Spec(b"glassgrad.memory.export_buffer.LentMemory", 0, 0, 1 << 18, _SLOTS)
_from_spec = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_Spec), ctypes.py_object)(
    ("PyType_FromSpecWithBases", ctypes.pythonapi)
)
LentMemory: Any = _from_spec(_SPEC, (Loan,))
# The type outlives this module at exit; its function must too.
for _forever in (_GET_BUFFER, LentMemory):
    hold(_forever)


def export(view: MemoryView) -> memoryview:
    """A memoryview that lends the view until it and all views made of it are gone."""
    return memoryview(LentMemory(view))
