"""bytes -> a file that is there as a whole or not at all, whenever the machine stops."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

PART = ".part-"  # how the names of unfinished files begin


def written_whole(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Write into a file of another name, wait until it is on the disk, then rename it."""
    path = path.absolute()
    try:
        _written(path, parts)
    except OSError as error:  # it knows the unfinished file's name, or with a full disk none
        if error.errno is None or PART not in str(error.filename or PART):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


def _written(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=PART)
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
    """Which permissions new files go without; it can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """The new name is on the disk, too. Windows has no such thing."""
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
