"""MemoryView -> DLPack capsule: consumers stamp a tensor when done, and we look for the stamps.

A deleter may be called from any thread, while an exception is on its way, and after Python has
gone. A ctypes callback survives none of these for certain (with an exception on its way CPython
loses it). So the deleter is no Python at all: it is the C library's time(), which writes the time
over the first word of the tensor. Memory is given back when the stamp is found: at the next export
or release, at `export_count`, and by the garbage collector.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Any

from glassgrad.memory.bridge_dlpack import (
    FORMATS,
    IS_COPIED,
    LEGACY,
    READ_ONLY,
    VERSION,
    VERSIONED,
    WITHOUT_FORMAT,
    DLTensor,
    Managed,
    ManagedVersioned,
    device_pair,
    name_of,
)
from glassgrad.memory.errors import RefusedError
from glassgrad.memory.item import simple
from glassgrad.memory.memory_view import SWEEPS, MemoryView

FEW = 64  # so many tensors are looked through at every occasion

_API = ctypes.pythonapi
_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
    ("PyCapsule_New", _API)
)
_allocate = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(("PyMem_RawMalloc", _API))
_free = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("PyMem_RawFree", _API))
_library: Any = ctypes.CDLL("msvcrt") if sys.platform == "win32" else ctypes.CDLL(None)
_time = _library._time64 if sys.platform == "win32" else _library.time
STAMP = ctypes.cast(_time, ctypes.c_void_p).value
KINDS = {fmt: key for key, fmt in FORMATS.items()}
KINDS_OF_DTYPES = {dtype: key for key, dtype in WITHOUT_FORMAT.items()}
LETTERS = {"int": 0, "uint": 1}
# A tensor's names outlive the interpreter, as its capsule may.
NAMES = {name: ctypes.create_string_buffer(name) for name in (LEGACY, VERSIONED)}


class Lent:
    """A tensor that a consumer may be using.

    Its memory is freed when it was given back and nobody looks at it any more; what was not given
    back at the end of Python stays, because its consumer may still stamp it.
    """

    __slots__ = ("address", "capsule", "is_back", "view", "word")

    def __init__(self, address: int, view: MemoryView, capsule: Any) -> None:
        self.address = address
        self.view = view
        self.capsule = capsule  # None once it is known to be taken
        self.word = self.first_word()
        self.is_back = False

    def first_word(self) -> int:
        return ctypes.c_uint64.from_address(self.address).value

    def __del__(self, free: Any = _free) -> None:
        if self.is_back:
            free(self.address)


LENT: dict[int, Lent] = {}


def export(
    view: MemoryView,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """A capsule of the newest kind that the consumer knows."""
    pair = device_pair(view.device)
    if dl_device is not None and tuple(dl_device) != pair:
        raise RefusedError(f"the memory is on {view.device}, not on device {tuple(dl_device)}")
    is_versioned = max_version is not None and max_version[0] >= 1
    source = copied(view) if copy else view
    if source.readonly and not is_versioned:
        raise RefusedError(
            "the memory is read-only, and this consumer's DLPack cannot say so",
            hint="copy it first, or use a newer version of the library",
        )
    if len(LENT) < FEW:
        sweep()
    address, kind = _filled(source, pair, is_versioned, IS_COPIED if copy else 0)
    try:
        source.lend()
    except BaseException:
        _free(address)
        raise
    capsule = _capsule(address, ctypes.addressof(NAMES[kind]), None)
    LENT[address] = Lent(address, source, capsule)
    return capsule


def copied(view: MemoryView) -> MemoryView:
    """The same elements row by row, in memory of their own."""
    raw = bytearray(view.memoryview().tobytes())
    address = ctypes.addressof(ctypes.c_char.from_buffer(raw)) if raw else 0
    return MemoryView(
        raw, address, len(raw), readonly=False, format=view.format, item_size=view.item_size,
        shape=view.shape, device=view.device, dtype=view._dtype,
    )  # fmt: skip


def _filled(
    view: MemoryView, pair: tuple[int, int], is_versioned: bool, flags: int
) -> tuple[int, bytes]:
    """A tensor in memory that is nobody's but ours: its address, and the name of its kind."""
    code, bits = item_kind(view)
    size, ndim = view.item_size, view.ndim
    if view.sub_offsets is not None or any(step % size for step in view.strides):
        raise RefusedError("rows behind pointers or between elements cannot be shared by DLPack")
    kind: Any = ManagedVersioned if is_versioned else Managed
    header = ctypes.sizeof(kind)
    address = _allocate(header + 16 * ndim)
    numbers = (ctypes.c_int64 * (2 * ndim)).from_address(address + header)
    numbers[:] = [*view.shape, *[step // size for step in view.strides]]
    places = (address + header, address + header + 8 * ndim) if ndim else (None, None)
    managed = kind.from_address(address)
    managed.tensor = DLTensor(view.data, *pair, ndim, code, bits, 1, *places, 0)
    managed.context = None
    managed.deleter = STAMP
    if is_versioned:
        managed.major, managed.minor = VERSION
        managed.flags = flags | (READ_ONLY if view.readonly else 0)
    return address, VERSIONED if is_versioned else LEGACY


def item_kind(view: MemoryView) -> tuple[int, int]:
    """DLPack's code and bits of the items."""
    dtype = view.dtype
    if dtype in KINDS_OF_DTYPES:
        return KINDS_OF_DTYPES[dtype]
    if dtype is not None:
        return KINDS[str(dtype.format)]
    part = simple(view.item_desc)
    native = part is not None and part.is_little == (sys.byteorder == "little")
    if part is None or not native or part.format not in KINDS:
        raise RefusedError(f"items of format {view.format!r} cannot be shared by DLPack")
    return KINDS[part.format]


# ---------------------------------------------------------------------- looking for stamps


def sweep() -> None:
    """Give back what consumers are done with, and what nobody ever took.

    Threads may sweep at once: whoever takes an entry out gives it back, and no address is used
    again while an entry of it is in somebody's list.
    """
    for lent in list(LENT.values()):
        capsule = lent.capsule
        if lent.first_word() != lent.word:
            _reclaim(lent)
        elif capsule is not None and name_of(capsule) not in NAMES:
            lent.capsule = None
        # It is held by `lent`, by this name and by getrefcount itself: nobody can take it.
        elif capsule is not None and sys.getrefcount(capsule) == 3:
            _reclaim(lent)


def _reclaim(lent: Lent) -> None:
    if LENT.pop(lent.address, None) is not None:  # else another thread was faster
        lent.is_back = True
        lent.view.returned()


def _after_collection(phase: str, details: dict[str, int]) -> None:
    if phase == "stop" and LENT and (len(LENT) < FEW or details["generation"] == 2):
        sweep()


SWEEPS.append(sweep)
gc.callbacks.append(_after_collection)
