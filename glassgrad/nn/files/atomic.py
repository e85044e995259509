"""Atomic writes: after a crash a file has all of its old content or all of the new."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

PART_PREFIX = ".part-"  # of the names of unfinished files


def write_atomically(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Write a temporary file, sync it to disk, and rename it to `path`."""
    path = path.absolute()
    try:
        _write(path, parts)
    except OSError as error:  # it names the unfinished file, or no file if the disk is full
        if error.errno is None or PART_PREFIX not in str(error.filename or PART_PREFIX):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


def _write(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=PART_PREFIX)
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            for piece in parts:
                out.write(piece)
            out.flush()
            os.fsync(out.fileno())
        part.chmod(mode)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _umask() -> int:
    """The umask of the process, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """Sync the rename to disk. Windows cannot sync folders."""
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
