"""MemoryView -> DLPack capsule.

Its deleter is the C library's time(), which overwrites the first word of the tensor with the time;
`capsules.py` says why, and how deleted tensors are found.
"""

from __future__ import annotations

import ctypes
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
from glassgrad.memory.capsules import ExportedStructure, allocate, make_capsule
from glassgrad.memory.errors import RefusedError
from glassgrad.memory.item import single_number
from glassgrad.memory.memory_view import MemoryView

_library: Any = ctypes.CDLL("msvcrt") if sys.platform == "win32" else ctypes.CDLL(None)
_time = _library._time64 if sys.platform == "win32" else _library.time
STAMP = ctypes.cast(_time, ctypes.c_void_p).value
KINDS = {fmt: key for key, fmt in FORMATS.items()}
KINDS_OF_DTYPES = {dtype: key for key, dtype in WITHOUT_FORMAT.items()}


class ExportedTensor(ExportedStructure):
    """A consumer renames the capsule when it takes a tensor, and stamps it when it is done."""

    __slots__ = ("word",)

    def __init__(self, address: int, view: MemoryView) -> None:
        super().__init__(address, view)
        self.word = self.first_word()

    def first_word(self) -> int:
        return ctypes.c_uint64.from_address(self.address).value

    def is_taken(self, capsule: Any) -> bool:
        return name_of(capsule) not in (LEGACY, VERSIONED)

    def is_done(self) -> bool:
        return self.first_word() != self.word


def export(
    view: MemoryView,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """A capsule of the newest version that the consumer supports."""
    pair = device_pair(view.device)
    if dl_device is not None and tuple(dl_device) != pair:
        raise RefusedError(f"the memory is on {view.device}, not on device {tuple(dl_device)}")
    is_versioned = max_version is not None and max_version[0] >= 1
    source = copy_of(view) if copy else view
    if source.readonly and not is_versioned:
        raise RefusedError(
            "the memory is read-only, which this consumer's version of DLPack cannot express",
            hint="copy it first, or use a newer version of the library",
        )
    address, kind = _make_tensor(source, pair, is_versioned, IS_COPIED if copy else 0)
    return make_capsule(ExportedTensor(address, source), kind)


def copy_of(view: MemoryView) -> MemoryView:
    """The same elements, row-major, in new memory."""
    raw = bytearray(view.memoryview().tobytes())
    address = ctypes.addressof(ctypes.c_char.from_buffer(raw)) if raw else 0
    return MemoryView(
        raw, address, len(raw), readonly=False, format=view.format, item_size=view.item_size,
        shape=view.shape, device=view.device, dtype=view._dtype,
    )  # fmt: skip


def _make_tensor(
    view: MemoryView, pair: tuple[int, int], is_versioned: bool, flags: int
) -> tuple[int, bytes]:
    """A tensor in memory of its own: its address, and the name of its capsule."""
    code, bits = item_kind(view)
    size, ndim = view.item_size, view.ndim
    if view.sub_offsets is not None or any(step % size for step in view.strides):
        raise RefusedError(
            "DLPack cannot share memory with sub-offsets or with strides between elements"
        )
    kind: Any = ManagedVersioned if is_versioned else Managed
    header = ctypes.sizeof(kind)
    address: int = allocate(header + 16 * ndim)
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
    """DLPack's type code and bits of the items."""
    dtype = view.dtype
    if dtype in KINDS_OF_DTYPES:
        return KINDS_OF_DTYPES[dtype]
    if dtype is not None:
        return KINDS[str(dtype.format)]
    part = single_number(view.item_desc)
    native = part is not None and part.is_little == (sys.byteorder == "little")
    if part is None or not native or part.format not in KINDS:
        raise RefusedError(f"DLPack has no type for items of format {view.format!r}")
    return KINDS[part.format]
