"""DISK:path -> memory: a file's bytes, mapped; what is read is never copied."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from pathlib import Path

from glassgrad.base.errors import DeviceError
from glassgrad.memory.allocator import Block, host_bytes, register


class DiskAllocator:
    """One file. It is made, or made longer, when a larger storage is allocated than it has bytes.

    Files that may not be written are mapped read-only.
    """

    def __init__(self, device: str) -> None:
        name = device.partition(":")[2]
        if not Path(name).name:
            raise DeviceError(f"{device!r} names no file", hint="such as DISK:weights.bin")
        self.path = Path(name).absolute()  # wherever this process goes
        self.readonly = self.path.exists() and not os.access(self.path, os.W_OK)

    def allocate(self, nbytes: int, zeroed: bool) -> Block:
        """Map the file's first bytes; what is new reads as zeros."""
        flags = os.O_RDONLY if self.readonly else os.O_RDWR | os.O_CREAT
        try:
            file = os.open(self.path, flags | getattr(os, "O_BINARY", 0), 0o644)
        except OSError as error:
            raise DeviceError(f"cannot open {self.path}: {error.strerror}") from error
        try:
            self._lengthen(file, nbytes)
            access = mmap.ACCESS_READ if self.readonly else mmap.ACCESS_WRITE
            # An empty file cannot be mapped.
            raw = mmap.mmap(file, nbytes, access=access) if nbytes else mmap.mmap(-1, 1)
        finally:
            os.close(file)
        return Block(_address(raw), nbytes, raw)

    def _lengthen(self, file: int, nbytes: int) -> None:
        found = os.fstat(file).st_size
        if found >= nbytes:
            return
        if self.readonly:
            raise DeviceError(
                f"{self.path} has {found} bytes and is read-only, but {nbytes} are wanted"
            )
        os.ftruncate(file, nbytes)

    def free(self, block: Block) -> None:
        """The pages go with the last reference; the system writes them back."""
        with suppress(BufferError, ValueError):
            block.keep.close()

    def as_buffer(self, address: int, nbytes: int, owner: object) -> memoryview:
        return host_bytes(address, nbytes, owner)


def _address(raw: mmap.mmap) -> int:
    from glassgrad.memory.hub import get

    with get(raw) as view:
        return view.data


def file_size(device: str) -> int:
    """How many bytes the file of a DISK device has; 0 if there is none yet."""
    path = Path(device.partition(":")[2])
    return path.stat().st_size if path.exists() else 0


register("DISK", DiskAllocator, is_kept=False)
