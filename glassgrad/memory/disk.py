"""DISK:path -> memory: the bytes of a file, mapped; reading copies nothing."""

from __future__ import annotations

import errno
import mmap
import os
from contextlib import suppress
from pathlib import Path

from glassgrad.base.errors import DeviceError
from glassgrad.memory.allocator import Block, host_bytes, register


class DiskAllocator:
    """A file, created or extended when a storage is larger than it.

    Files without write permission are mapped read-only.
    """

    def __init__(self, device: str) -> None:
        name = device.partition(":")[2]
        if not Path(name).name:
            raise DeviceError(f"{device!r} has no file name", hint="such as DISK:weights.bin")
        self.path = Path(name).absolute()  # independent of later chdir()
        self.readonly = self.path.exists() and not os.access(self.path, os.W_OK)

    def allocate(self, nbytes: int, zeroed: bool) -> Block:
        """Map the first bytes of the file; new ones are zeros.

        Disk blocks are allocated now: a process that writes to a page without one is killed
        (SIGBUS).
        """
        flags = os.O_RDONLY if self.readonly else os.O_RDWR | os.O_CREAT
        is_new = not self.path.exists()
        try:
            file = os.open(self.path, flags | getattr(os, "O_BINARY", 0), 0o644)
        except OSError as error:
            raise DeviceError(f"cannot open {self.path}: {error.strerror}") from error
        try:
            self._reserve(file, nbytes, is_new)
            access = mmap.ACCESS_READ if self.readonly else mmap.ACCESS_WRITE
            # An empty file cannot be mapped.
            raw = mmap.mmap(file, nbytes, access=access) if nbytes else mmap.mmap(-1, 1)
        finally:
            os.close(file)
        return Block(_address(raw), nbytes, raw)

    def _reserve(self, file: int, nbytes: int, is_new: bool) -> None:
        """Extend the file if necessary; if the disk is full, it is unchanged."""
        found = os.fstat(file)
        if self.readonly:
            if found.st_size < nbytes:
                raise DeviceError(
                    f"{self.path} has {found.st_size} bytes and is read-only, but {nbytes} are "
                    "wanted"
                )
            return
        try:
            if found.st_size < nbytes:
                os.ftruncate(file, nbytes)
            if not _is_on_disk(found, nbytes):
                _allocate_blocks(file, nbytes)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(file, found.st_size)
            if is_new:
                self.path.unlink(missing_ok=True)
            raise DeviceError(
                f"cannot allocate {nbytes:,} bytes in {self.path}: {error.strerror}",
                hint="free space on that disk, or use another one",
            ) from error

    def free(self, block: Block) -> None:
        """Unmap the file; the system writes the pages back."""
        with suppress(BufferError, ValueError):
            block.keep.close()

    def as_buffer(self, address: int, nbytes: int, owner: object) -> memoryview:
        return host_bytes(address, nbytes, owner)


def _is_on_disk(found: os.stat_result, nbytes: int) -> bool:
    """True if a file has that many bytes and no holes."""
    blocks = getattr(found, "st_blocks", None)
    return found.st_size >= nbytes and (blocks is None or blocks * 512 >= found.st_size)


def _allocate_blocks(file: int, nbytes: int) -> None:
    """Allocate disk blocks for the bytes of a file, where the system supports it."""
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(file, 0, nbytes)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS):
            raise


def _address(raw: mmap.mmap) -> int:
    from glassgrad.memory.hub import get

    with get(raw) as view:
        return view.data


def file_size(device: str) -> int:
    """The size of a DISK device's file in bytes; 0 if it does not exist."""
    path = Path(device.partition(":")[2])
    return path.stat().st_size if path.exists() else 0


register("DISK", DiskAllocator, is_cached=False)
