"""Views -> capsules for other libraries, and how we find out that their consumers are done.

A consumer calls a C function when it is done: from any thread, with an exception set, even after
Python has finalized. A ctypes callback is not safe in any of these cases (with an exception set,
CPython loses it). So the functions that we pass on contain no Python: they write a mark, and we
look for marks at the next export or release, at `export_count`, and after garbage collections.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Any

from glassgrad.memory.memory_view import SWEEPS, MemoryView

MAX_EAGER_SWEEP = 64  # exports; with more, only full collections look for marks

_API = ctypes.pythonapi
_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
    ("PyCapsule_New", _API)
)
allocate = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(("PyMem_RawMalloc", _API))
free = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("PyMem_RawFree", _API))
NAMES: dict[bytes, Any] = {}  # never freed, as capsules may outlive the interpreter


class ExportedStructure:
    """A structure in raw memory that a consumer may be using.

    It is freed when its consumer is done and nothing refers to it any more. Structures whose
    consumers are not done at exit are never freed, because these may still write their marks.
    """

    __slots__ = ("address", "capsule", "is_released", "view")

    def __init__(self, address: int, view: MemoryView | None) -> None:
        self.address = address
        self.is_released = False
        self.capsule: Any = None  # None after it was taken
        self.view = view

    def is_taken(self, capsule: Any) -> bool:
        """True if a consumer has taken it out of its capsule."""
        raise NotImplementedError

    def is_done(self) -> bool:
        """True if that consumer has written its mark."""
        raise NotImplementedError

    def __del__(self, free: Any = free) -> None:
        if self.is_released:
            free(self.address)


EXPORTED: dict[int, ExportedStructure] = {}


def make_capsule(entry: ExportedStructure, name: bytes) -> Any:
    """A capsule for a consumer. It has no destructor, as that would be a Python function."""
    if len(EXPORTED) < MAX_EAGER_SWEEP:
        sweep()
    if name not in NAMES:
        NAMES[name] = ctypes.create_string_buffer(name)
    if entry.view is not None:
        try:
            entry.view.begin_export()
        except BaseException:
            entry.is_released = True
            raise
    entry.capsule = capsule = _capsule(entry.address, ctypes.addressof(NAMES[name]), None)
    EXPORTED[entry.address] = entry
    return capsule


def sweep() -> None:
    """Release the views whose consumers are done, and those that were never taken.

    Threads may sweep concurrently: the one that removes an entry releases it, and no address is
    reused while an entry of it is in some thread's list.
    """
    for entry in list(EXPORTED.values()):
        capsule = entry.capsule
        if entry.is_done():
            _finish(entry)
        elif capsule is not None and entry.is_taken(capsule):
            entry.capsule = None
        # Only the entry, this name and getrefcount refer to it: nobody can take it.
        elif capsule is not None and sys.getrefcount(capsule) == 3:
            _finish(entry)


def _finish(entry: ExportedStructure) -> None:
    if EXPORTED.pop(entry.address, None) is not None:  # else another thread did
        entry.is_released = True
        if entry.view is not None:
            entry.view.end_export()


def _after_collection(phase: str, details: dict[str, int]) -> None:
    if (
        phase == "stop"
        and EXPORTED
        and (len(EXPORTED) < MAX_EAGER_SWEEP or details["generation"] == 2)
    ):
        sweep()


SWEEPS.append(sweep)
gc.callbacks.append(_after_collection)
