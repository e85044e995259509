"""MemoryView -> Arrow C array: a row of numbers as a column, in two capsules.

Arrow wants `release` to clear a field of a structure that its consumer has moved, so it must be a
Python function here: unlike DLPack's tensors, a column that goes while an exception is on its way
turns that exception into a SystemError.
"""

from __future__ import annotations

import ctypes
import sys
from itertools import count
from typing import Any

from glassgrad.memory.bridge_arrow import FORMATS, ArrowArray, ArrowSchema
from glassgrad.memory.errors import RefusedError
from glassgrad.memory.export_buffer import hold
from glassgrad.memory.memory_view import SWEEPS, MemoryView

_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
LETTERS = {fmt: letter for letter, fmt in FORMATS.items()}
NAMES = {kind: ctypes.create_string_buffer(name) for kind, name in (
    (ArrowArray, b"arrow_array"), (ArrowSchema, b"arrow_schema"),
)}  # fmt: skip


class Loan:
    """Lends a view for as long as a consumer has the array."""

    def __init__(self, view: MemoryView) -> None:
        self.view = view.lend()
        self.buffers = (ctypes.c_void_p * 2)(None, view.data)

    def __del__(self) -> None:
        self.view.returned()


# Consumers move the structures about, so what they need is found by the number in private_data.
LOANS: dict[int, Loan] = {}
# Structures whose capsules may still be taken. A capsule gets no destructor: it would be a Python
# function, which cannot run while an exception is on its way.
OFFERED: dict[int, tuple[Any, Any]] = {}
_numbers = count(1)


def _array_released(address: int, kind: Any = ArrowArray, loans: Any = LOANS) -> None:
    array = kind.from_address(address)
    array.release = None
    loans.pop(array.private_data, None)


def _schema_released(address: int, kind: Any = ArrowSchema) -> None:
    kind.from_address(address).release = None


_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_release_array, _release_schema = _RELEASE(_array_released), _RELEASE(_schema_released)
for _forever in (_release_array, _release_schema):  # consumers may call them late
    hold(_forever)


def export(view: MemoryView) -> tuple[Any, Any]:
    """The capsules of schema and array. Arrow knows nothing of strides or axes."""
    sweep()
    if view.ndim != 1 or not view.is_row_major_contiguous():
        raise RefusedError(
            f"a column has one axis without gaps, not shape {view.shape} and strides "
            f"{view.strides}",
            hint="reshape or copy it first",
        )
    dtype = view.dtype
    if dtype is None or dtype.format not in LETTERS:
        raise RefusedError(f"Arrow cannot look at items of format {view.format!r}")
    number = next(_numbers)
    loan = LOANS[number] = Loan(view)
    buffers = ctypes.addressof(loan.buffers)
    release = ctypes.cast(_release_array, ctypes.c_void_p)
    array = ArrowArray(view.shape[0], 0, 0, 2, 0, buffers, None, None, release, number)
    done = ctypes.cast(_release_schema, ctypes.c_void_p)
    letter = LETTERS[str(dtype.format)]
    schema = ArrowSchema(letter, b"", None, 0, 0, None, None, done, None)
    return _offer(schema), _offer(array)


def _offer(structure: Any) -> Any:
    address = ctypes.addressof(structure)
    capsule = _capsule(address, ctypes.addressof(NAMES[type(structure)]), None)
    OFFERED[address] = (structure, capsule)
    return capsule


def sweep() -> None:
    """Forget capsules that were taken, and release what nobody took."""
    for address, (structure, capsule) in list(OFFERED.items()):
        is_dropped = sys.getrefcount(capsule) == 3  # the pair, this name, getrefcount itself
        if structure.release and not is_dropped:
            continue
        if OFFERED.pop(address, None) is not None and structure.release:
            release = _release_array if isinstance(structure, ArrowArray) else _release_schema
            release(address)


SWEEPS.append(sweep)
