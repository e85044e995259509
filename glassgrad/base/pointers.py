"""memoryview <-> address, for ctypes and raw pointers."""

from __future__ import annotations

import ctypes
from typing import Any


def mv_address(view: memoryview) -> int:
    """The address of the first byte of a writable, contiguous buffer."""
    return ctypes.addressof(ctypes.c_char.from_buffer(view)) if view.nbytes else 0


def to_mv(address: int, nbytes: int) -> memoryview:
    """The bytes at an address. The owner of the memory must outlive the view.

    >>> data = bytearray(b"abc")
    >>> bytes(to_mv(mv_address(memoryview(data)), 3))
    b'abc'
    """
    kind: Any = ctypes.c_uint8 * nbytes
    return memoryview(kind.from_address(address)).cast("B")


def from_mv(view: memoryview, to_type: Any = ctypes.c_char) -> ctypes.Array[Any]:
    """The buffer as a ctypes array with the given element type, sharing its memory."""
    kind: Any = to_type * (view.nbytes // ctypes.sizeof(to_type))
    shared: ctypes.Array[Any] = kind.from_buffer(view.cast("B"))
    return shared


def flat_mv(view: memoryview) -> memoryview:
    """The buffer as bytes."""
    return view if view.nbytes == 0 and view.ndim == 1 else view.cast("B", shape=[view.nbytes])
