"""Key -> object code: code compiled once on this machine is read from disk afterwards.

Nothing here may fail: a folder that is not writable stores nothing, a damaged file is a miss. Files
are written under a temporary name and renamed, so concurrent or killed writers do no harm. Each
file begins with a digest of its key and contents, so a file under a wrong name is a miss, too.
"""

from __future__ import annotations

import os
from contextlib import suppress
from time import time

from glassgrad.base.config import CACHELEVEL
from glassgrad.base.errors import SettingError
from glassgrad.base.folders import cache_folder, make_private, private_folder

try:  # hashlib loads OpenSSL, which takes as long as ten of our modules
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

MAGIC = b"glassgrad object 3\n"
DIGEST_BYTES = 32
MAX_CACHE_BYTES = 1 << 30  # of the folder; beyond, the least recently used files are removed
TEMPORARY_PREFIX = ".writing-"  # of files that are being written
STALE_WRITE_SECONDS = 3600.0  # no writer takes that long


def object_key(*parts: str) -> str:
    """One key for everything that the code depends on."""
    digest = blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        encoded = part.encode()
        digest.update(f"{len(encoded)}:".encode())
        digest.update(encoded)
    return digest.hexdigest()


def _digest(key: str, code: bytes) -> bytes:
    digest = blake2b(f"{key}\n".encode(), digest_size=DIGEST_BYTES)
    digest.update(code)
    return digest.digest()


def read_object(key: str) -> bytes | None:
    """The object code under a key, if it exists and is intact."""
    path = _path(key)
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            stored = file.read()
    except OSError:
        return None
    start = len(MAGIC) + DIGEST_BYTES
    code = stored[start:]
    if stored[:start] != MAGIC + _digest(key, code):
        return None
    with suppress(OSError):  # mark as recently used
        os.utime(path)
    return code


def write_object(key: str, code: bytes) -> None:
    """Store object code under a key; does nothing if the disk refuses."""
    path = _path(key, create=True)
    if path is None:
        return
    with suppress(OSError):
        make_private(os.path.dirname(path))
        _replace(path, MAGIC + _digest(key, code) + code)
        if key.startswith("00"):  # one key in 256, as listing all files is slow
            prune(MAX_CACHE_BYTES)


def has_object(key: str) -> bool:
    """True if a file exists under a key; its contents are not checked."""
    path = _path(key)
    return path is not None and os.path.exists(path)


def remove_object(key: str) -> None:
    """Remove the entry under a key."""
    path = _path(key)
    if path is not None:
        with suppress(OSError):
            os.unlink(path)


def clear() -> None:
    """Remove all entries."""
    prune(0)


def prune(max_bytes: int) -> None:
    """Remove the least recently used files until the rest fits into `max_bytes`, and files that
    killed writers left behind. Other processes may remove the same files concurrently.
    """
    with suppress(OSError, SettingError):
        files = _files()
        total = sum(size for _, size, _ in files)
        for used, size, path in sorted(files):
            name = os.path.basename(path)
            is_left_over = name.startswith(TEMPORARY_PREFIX) and used < time() - STALE_WRITE_SECONDS
            if total > max_bytes or is_left_over:
                with suppress(FileNotFoundError):
                    os.unlink(path)
                total -= size


def entry_prefixes(count: int) -> list[tuple[bytes, int]]:
    """The first `count` bytes of each entry, and its size on disk."""
    found = []
    for _, size, path in _files():
        with suppress(OSError), open(path, "rb") as file:
            file.seek(len(MAGIC) + DIGEST_BYTES)
            found.append((file.read(count), size))
    return found


def _files() -> list[tuple[float, int, str]]:
    """(time of last use, size, path) of each entry; files outside of our folders are left out."""
    root, found = os.path.join(cache_folder(), "objects"), []
    for folder, _, names in os.walk(root):
        for name in names if folder != root else ():
            path = os.path.join(folder, name)
            with suppress(OSError):  # removed meanwhile
                stat = os.stat(path)
                found.append((stat.st_mtime, stat.st_size, path))
    return found


def _path(key: str, create: bool = False) -> str | None:
    """The file of a key; None if caching is off or impossible."""
    if not CACHELEVEL:
        return None
    try:
        folder = private_folder("objects", create)
    except (OSError, SettingError):
        return None
    return None if folder is None else os.path.join(folder, key[:2], key[2:])


def _replace(path: str, contents: bytes) -> None:
    temporary = os.path.join(os.path.dirname(path), f"{TEMPORARY_PREFIX}{os.urandom(8).hex()}")
    try:
        with open(temporary, "wb") as file:
            file.write(contents)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
