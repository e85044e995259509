"""views -> capsules: what consumers of other libraries take, and how we find out they are done.

A consumer says that it is done by calling a C function: from any thread, while an exception is on
its way, even after Python has gone. A ctypes callback survives none of these for certain (with an
exception on its way CPython loses it). So the functions that we hand out are no Python at all. They
leave a mark, and we look for marks: at the next export or release, at `export_count`, and whenever
the garbage collector runs.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Any

from glassgrad.memory.memory_view import SWEEPS, MemoryView

FEW = 64  # so many are looked through at every occasion

_API = ctypes.pythonapi
_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
    ("PyCapsule_New", _API)
)
allocate = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(("PyMem_RawMalloc", _API))
free = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("PyMem_RawFree", _API))
NAMES: dict[bytes, Any] = {}  # they outlive the interpreter, as capsules may


class Lent:
    """A structure in memory that is nobody's but ours, which a consumer may be using.

    It is freed when it was given back and nobody looks at it any more. What was not given back at
    the end of Python stays, because its consumer may still mark it.
    """

    __slots__ = ("address", "capsule", "is_back", "view")

    def __init__(self, address: int, view: MemoryView | None) -> None:
        self.address = address
        self.is_back = False
        self.capsule: Any = None  # None once it is known to be taken
        self.view = view

    def is_taken(self, capsule: Any) -> bool:
        """Whether a consumer has taken it out of its capsule."""
        raise NotImplementedError

    def is_done(self) -> bool:
        """Whether that consumer has left its mark."""
        raise NotImplementedError

    def __del__(self, free: Any = free) -> None:
        if self.is_back:
            free(self.address)


LENT: dict[int, Lent] = {}


def offer(lent: Lent, name: bytes) -> Any:
    """A capsule for a consumer to take. It has no destructor: that would be a Python function."""
    if len(LENT) < FEW:
        sweep()
    if name not in NAMES:
        NAMES[name] = ctypes.create_string_buffer(name)
    if lent.view is not None:
        try:
            lent.view.lend()
        except BaseException:
            lent.is_back = True
            raise
    lent.capsule = capsule = _capsule(lent.address, ctypes.addressof(NAMES[name]), None)
    LENT[lent.address] = lent
    return capsule


def sweep() -> None:
    """Give back what consumers are done with, and what nobody ever took.

    Threads may sweep at once: whoever takes an entry out gives it back, and no address is used
    again while an entry of it is in somebody's list.
    """
    for lent in list(LENT.values()):
        capsule = lent.capsule
        if lent.is_done():
            _reclaim(lent)
        elif capsule is not None and lent.is_taken(capsule):
            lent.capsule = None
        # It is held by `lent`, by this name and by getrefcount itself: nobody can take it.
        elif capsule is not None and sys.getrefcount(capsule) == 3:
            _reclaim(lent)


def _reclaim(lent: Lent) -> None:
    if LENT.pop(lent.address, None) is not None:  # else another thread was faster
        lent.is_back = True
        if lent.view is not None:
            lent.view.returned()


def _after_collection(phase: str, details: dict[str, int]) -> None:
    if phase == "stop" and LENT and (len(LENT) < FEW or details["generation"] == 2):
        sweep()


SWEEPS.append(sweep)
gc.callbacks.append(_after_collection)
