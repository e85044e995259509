"""Allocation of host memory: aligned for vectors, zeroed when fresh, pooled when freed.

Each device family ("CPU", "CUDA") registers its allocator here, so that memory/ does not depend on
devices/.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from glassgrad.base.errors import DeviceError, OutOfMemoryError
from glassgrad.memory.poison import is_poisoned, poison

ALIGNMENT = 64  # a cache line, and the widest vector register
MAPPED_BYTES = 1 << 20  # blocks from this size on are mapped, not allocated from the heap
HUGE_PAGE_BYTES = 2 << 20  # on x86-64 and AArch64 with pages of 4 KB


class Block(NamedTuple):
    """A block of a device's memory; `keep` is the object that keeps it allocated."""

    address: int
    nbytes: int
    keep: Any


class Allocator(Protocol):
    """How a device allocates memory and shares it with the host."""

    def allocate(self, nbytes: int, zeroed: bool) -> Block: ...

    def free(self, block: Block) -> None: ...

    def as_buffer(self, address: int, nbytes: int, owner: object) -> memoryview:
        """The bytes as the host sees them; the memoryview keeps `owner` alive."""
        ...


class HostAllocator:
    """Memory of this process. Freed blocks go to a bounded pool for reuse by size."""

    def __init__(self, pool_bytes: int) -> None:
        self.pool_bytes = pool_bytes
        self.pooled = 0
        # Storages are freed by the garbage collector, at any moment of any thread: a lock here
        # could deadlock with itself. Appending to and popping from a deque is atomic.
        self.pool: dict[int, deque[Block]] = {}

    def allocate(self, nbytes: int, zeroed: bool) -> Block:
        size = size_class(nbytes)
        try:
            block = self.pool[size].pop()
        except (KeyError, IndexError):
            block = self._allocate_new(size)
        else:
            self.pooled -= size
            if zeroed:
                ctypes.memset(block.address, 0, nbytes)
        if not zeroed and is_poisoned():
            poison(block.address, size)
        return block

    def free(self, block: Block) -> None:
        if self.pooled + block.nbytes > self.pool_bytes:
            return  # dropping the last reference returns it to the system
        if is_poisoned():  # makes use after free visible
            poison(block.address, block.nbytes)
        self.pooled += block.nbytes
        blocks = self.pool.get(block.nbytes)
        if blocks is None:
            blocks = self.pool.setdefault(block.nbytes, deque())
        blocks.append(block)

    def clear(self) -> None:
        """Return all pooled blocks to the system."""
        self.pool.clear()
        self.pooled = 0

    def as_buffer(self, address: int, nbytes: int, owner: object) -> memoryview:
        return host_bytes(address, nbytes, owner)

    def _allocate_new(self, size: int) -> Block:
        make = _mapped if size >= MAPPED_BYTES else _from_heap
        try:
            return make(size)
        except (MemoryError, OSError, OverflowError, ValueError):
            self.clear()
        try:
            return make(size)
        except (MemoryError, OSError, OverflowError, ValueError) as error:
            raise OutOfMemoryError(
                f"cannot allocate {size:,} bytes of host memory",
                hint="free tensors that are no longer needed, or compute in smaller batches",
            ) from error


@lru_cache(maxsize=4096)
def size_class(nbytes: int) -> int:
    """The size that is allocated for nbytes: at most an eighth more, so that few sizes occur.

    >>> size_class(1), size_class(64), size_class(1000), size_class(1_000_000)
    (64, 64, 1024, 1048576)
    """
    step = max(ALIGNMENT, 1 << max(0, nbytes.bit_length() - 4))
    return max(step, (nbytes + step - 1) // step * step)


def _from_heap(size: int) -> Block:
    """A bytearray is zeroed lazily by the system's calloc, but needs alignment."""
    raw = bytearray(size + ALIGNMENT)
    address = ctypes.addressof(ctypes.c_char.from_buffer(raw))
    return Block(-(-address // ALIGNMENT) * ALIGNMENT, size, raw)


def _mapped(size: int) -> Block:
    """Private anonymous pages; huge pages where available."""
    if hasattr(mmap, "MAP_PRIVATE"):
        raw = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE") and size >= HUGE_PAGE_BYTES:
            _advise_huge_pages(raw)
    else:
        raw = mmap.mmap(-1, size)
    return Block(ctypes.addressof(ctypes.c_char.from_buffer(raw)), size, raw)


def _advise_huge_pages(raw: mmap.mmap) -> None:
    with suppress(OSError):  # not supported by this kernel
        raw.madvise(mmap.MADV_HUGEPAGE)


def host_bytes(address: int, nbytes: int, owner: object) -> memoryview:
    """A writable memoryview of host memory that keeps `owner` alive."""
    if nbytes == 0:
        return memoryview(bytearray())
    window: Any = (ctypes.c_ubyte * nbytes).from_address(address)
    window.owner = owner
    return memoryview(window).cast("B")


def _physical_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return 4 << 30


HOST = HostAllocator(pool_bytes=min(1 << 30, _physical_bytes() // 8))

ALLOCATORS: dict[str, Allocator] = {}
FACTORIES: dict[str, Callable[[str], Allocator]] = {}
CACHED_FAMILIES: set[str] = set()


def register(family: str, factory: Callable[[str], Allocator], is_cached: bool = True) -> None:
    """Register the allocator of a device family: the factory takes a device's name.

    An allocator that is not cached is created for every storage.
    """
    FACTORIES[family] = factory
    (CACHED_FAMILIES.add if is_cached else CACHED_FAMILIES.discard)(family)


def allocator_for(device: str) -> Allocator:
    """The allocator of a device such as "CPU" or "CUDA:1"."""
    found = ALLOCATORS.get(device)
    if found is not None:
        return found
    family = device.partition(":")[0]
    if family == "DISK" and family not in FACTORIES:
        import_module("glassgrad.memory.disk")
    factory = FACTORIES.get(family)
    if factory is None:
        raise DeviceError(
            f"device {device!r} has no allocator",
            hint=f"devices with allocators: {', '.join(sorted(FACTORIES))}",
        )
    allocator = factory(device)
    return ALLOCATORS.setdefault(device, allocator) if family in CACHED_FAMILIES else allocator


# Device families whose memory is addressable by this process.
HOST_FAMILIES = frozenset(("CPU", "CLANG", "PYTHON", "DISK"))


def is_host(device: str) -> bool:
    return device.partition(":")[0] in HOST_FAMILIES


def is_file(device: str) -> bool:
    return device.startswith("DISK:")


for _family in ("CPU", "CLANG", "PYTHON"):
    register(_family, lambda _: HOST)
