"""Storage: a flat block on one device, allocated on first use."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any

from glassgrad.base.config import MEM_LIMIT
from glassgrad.base.counters import GlobalCounters
from glassgrad.base.dtype import DType, DTypeLike, to_dtype
from glassgrad.base.errors import DeviceError, FormatError, OutOfMemoryError
from glassgrad.base.events import LISTENERS, BufferAllocated, announce
from glassgrad.base.fast_dataclasses import frozen, replace
from glassgrad.memory.allocator import Allocator, Block, allocator_for, is_file
from glassgrad.memory.poison import is_poisoned
from glassgrad.memory.sharing import SHARED_STORAGES

# Two threads may allocate the same storage at once.
ALLOCATING = RLock()
if hasattr(os, "register_at_fork"):  # a forked child must not inherit a locked lock
    os.register_at_fork(
        before=ALLOCATING.acquire,
        after_in_parent=ALLOCATING.release,
        after_in_child=ALLOCATING.release,
    )


@frozen
class BufferSpec:
    """Options of an allocation: host access, no pooling, or existing memory at an address.

    `is_undefined`: the initial contents need not be zeros.
    """

    cpu_access: bool = False
    nolru: bool = False
    external_ptr: int | None = None
    is_undefined: bool = False


DEFAULT_SPEC = BufferSpec()
UNDEFINED = BufferSpec(is_undefined=True)


class Storage:
    """Owns `size` elements on a device, or refers to an address that `owner` keeps valid."""

    __slots__ = (
        "__weakref__", "_address", "_allocator", "_block", "_offset", "base", "device", "dtype",
        "holder", "nbytes", "options", "owner", "readonly", "size", "unshared_version",
    )  # fmt: skip

    def __init__(
        self,
        device: str,
        size: int,
        dtype: DTypeLike,
        options: BufferSpec | None = None,
        owner: object = None,
        readonly: bool = False,
    ) -> None:
        if size < 0:
            raise FormatError(f"a storage cannot have {size} elements")
        self.device = device
        self.size = size
        self.dtype = dtype if isinstance(dtype, DType) else to_dtype(dtype)
        self.nbytes = size * self.dtype.itemsize
        self.options = DEFAULT_SPEC if options is None else options
        self.owner = owner
        self.base: Storage | None = None
        self._offset = 0
        self._block: Block | None = None
        self._allocator: Allocator = allocator_for(device)
        self.readonly = readonly or getattr(self._allocator, "readonly", False)
        self.holder: object | None = None  # the only owner that may write to shared memory
        self.unshared_version = -1  # of SHARED_STORAGES when nothing overlapped this
        self._address = self.options.external_ptr or 0
        if self._address:
            SHARED_STORAGES.add(self)

    def __repr__(self) -> str:
        state = "allocated" if self.is_allocated() else "not allocated"
        return f"<Storage {self.device} {self.size} x {self.dtype.name}, {state}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles have memory of their own; those of a file are on the CPU."""
        device = "CPU" if is_file(self.device) else self.device
        return _filled, (device, self.size, self.dtype, bytes(self.as_buffer()))

    def __del__(self) -> None:
        try:
            block = self._block
        except AttributeError:  # __init__ failed
            return
        if block is None:
            return
        self._count(-self.nbytes)
        if not self.options.nolru:
            self._allocator.free(block)

    # ------------------------------------------------------------------ allocation

    def is_allocated(self) -> bool:
        return bool(self._address)

    def allocate(self, zeroed: bool = True) -> Storage:
        """Allocate the memory now. `zeroed=False` is for blocks that will be fully overwritten."""
        with ALLOCATING:
            if self._address:
                raise DeviceError(f"{self!r} is already allocated")
            if self.base is not None:
                self._address = self.base.address + self._offset
                SHARED_STORAGES.add(self)
                return self
            if MEM_LIMIT.was_changed:
                self._check_limit()
            self._block = self._allocator.allocate(self.nbytes, zeroed)
            self._address = self._block.address
            self._count(self.nbytes)
        if LISTENERS:
            announce(BufferAllocated(self.device, self.nbytes))
        return self

    def _count(self, nbytes: int) -> None:
        if not self.device.startswith("DISK"):  # files do not count
            GlobalCounters.allocated(self.device, nbytes)

    def _check_limit(self) -> None:
        limit = MEM_LIMIT.value
        used = GlobalCounters.mem_used_per_device[self.device]
        if limit and used + self.nbytes > limit:
            raise OutOfMemoryError(
                f"cannot allocate {self.nbytes:,} bytes on {self.device}: {used:,} are in use, and "
                f"the limit is {limit:,}",
                hint="raise MEM_LIMIT, or free tensors that are no longer needed",
            )

    def ensure_allocated(self, zeroed: bool = True) -> Storage:
        with ALLOCATING:
            return self if self._address else self.allocate(zeroed)

    @property
    def address(self) -> int:
        """The address of the first byte; allocates if necessary."""
        return self._address or self.ensure_allocated(not self._is_poisoned())._address

    def _is_poisoned(self) -> bool:
        """Undefined contents are zeros unless POISON=1."""
        return self.options.is_undefined and is_poisoned()

    def part(self, size: int, dtype: DType, offset: int) -> Storage:
        """A storage of `size` elements that starts `offset` bytes into this one and shares its
        memory.
        """
        nbytes = size * dtype.itemsize
        if offset < 0 or offset + nbytes > self.nbytes:
            raise FormatError(
                f"bytes {offset} to {offset + nbytes} lie outside a storage of {self.nbytes} bytes"
            )
        options = replace(self.options, external_ptr=None)
        part = Storage(self.device, size, dtype, options, self.owner, self.readonly)
        part.base = self if self.base is None else self.base
        part._offset = self._offset + offset
        return part.allocate() if self._address else part

    # ------------------------------------------------------------------ bytes in and out

    def as_buffer(self) -> memoryview:
        """The bytes, shared; the memoryview keeps this storage alive."""
        view = self._bytes()
        SHARED_STORAGES.add(self)
        return view.toreadonly() if self.readonly else view

    def _bytes(self) -> memoryview:
        return self._allocator.as_buffer(self.address, self.nbytes, self)

    def copyin(self, data: memoryview) -> Storage:
        """Overwrite the contents with the bytes of `data`."""
        if self.readonly:
            raise FormatError("cannot write into read-only memory", hint="copy it first")
        self._check_length(data)
        if not self._address:
            self.ensure_allocated(zeroed=False)
        if self.nbytes:
            self.as_buffer()[:] = data.cast("B")
        return self

    def copyout(self, data: memoryview) -> memoryview:
        """Copy the contents into `data`."""
        self._check_length(data)
        if self.nbytes:
            data.cast("B")[:] = self.as_buffer()
        return data

    def _check_length(self, data: memoryview) -> None:
        if data.nbytes != self.nbytes:
            raise FormatError(f"{data.nbytes} bytes given for a storage of {self.nbytes} bytes")


@contextmanager
def restored_on_error(storages: Sequence[Storage], error: type[Exception]) -> Iterator[None]:
    """If this error is raised inside, these storages get back their old contents."""
    found = list(dict.fromkeys(storages))
    saved = [bytes(storage._bytes()) for storage in found]
    try:
        yield
    except error:
        for storage, old in zip(found, saved, strict=True):
            storage._bytes()[:] = old
        raise


def _filled(device: str, size: int, dtype: DType, raw: bytes) -> Storage:
    return Storage(device, size, dtype).copyin(memoryview(raw))
