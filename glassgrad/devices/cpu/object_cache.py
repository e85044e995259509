"""key -> object code: what was compiled once on this machine is read from disk the next time.

Nothing here may fail: a folder that cannot be written is a cache that forgets, a damaged file is a
miss. Files appear by renaming, so processes that write at once, or die while writing, do no harm.
Each begins with a digest of key and contents: a file under another's name is a miss, too.
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
MOST_BYTES = 1 << 30  # what the folder may hold before those go that were used longest ago
WRITING = ".writing-"  # how names of files begin that are being written
LONG_AGO = 3600.0  # seconds; nobody writes for that long


def object_key(*parts: str) -> str:
    """One name for everything that the code depends on."""
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
    """The object code kept under a key, if it is there and whole."""
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
    with suppress(OSError):  # it was used now: others go first
        os.utime(path)
    return code


def write_object(key: str, code: bytes) -> None:
    """Keep object code under a key, or do nothing if the disk does not let us."""
    path = _path(key, create=True)
    if path is None:
        return
    with suppress(OSError):
        make_private(os.path.dirname(path))
        _replace(path, MAGIC + _digest(key, code) + code)
        if key.startswith("00"):  # one key in 256: looking at every file each time would be slow
            prune(MOST_BYTES)


def has_object(key: str) -> bool:
    """Whether something is kept under a key; it is not looked at."""
    path = _path(key)
    return path is not None and os.path.exists(path)


def remove_object(key: str) -> None:
    """Forget what is kept under a key."""
    path = _path(key)
    if path is not None:
        with suppress(OSError):
            os.unlink(path)


def clear() -> None:
    """Forget everything that was compiled."""
    prune(0)


def prune(most_bytes: int) -> None:
    """Remove what was used longest ago until no more than this is kept.

    And what killed writers left. Others may remove the same files at the same time.
    """
    with suppress(OSError, SettingError):
        files = _files()
        total = sum(size for _, size, _ in files)
        for used, size, path in sorted(files):
            name = os.path.basename(path)
            is_left_over = name.startswith(WRITING) and used < time() - LONG_AGO
            if total > most_bytes or is_left_over:
                with suppress(FileNotFoundError):
                    os.unlink(path)
                total -= size


def beginnings(count: int) -> list[tuple[bytes, int]]:
    """How each thing that is kept begins, in so many bytes, and its size on disk."""
    found = []
    for _, size, path in _files():
        with suppress(OSError), open(path, "rb") as file:
            file.seek(len(MAGIC) + DIGEST_BYTES)
            found.append((file.read(count), size))
    return found


def _files() -> list[tuple[float, int, str]]:
    """When each file was used, and its size; not what others have put beside our folders."""
    root, found = os.path.join(cache_folder(), "objects"), []
    for folder, _, names in os.walk(root):
        for name in names if folder != root else ():
            path = os.path.join(folder, name)
            with suppress(OSError):  # gone meanwhile
                stat = os.stat(path)
                found.append((stat.st_mtime, stat.st_size, path))
    return found


def _path(key: str, create: bool = False) -> str | None:
    """The file of a key; None if nothing is kept, or nothing can be."""
    if not CACHELEVEL:
        return None
    try:
        folder = private_folder("objects", create)
    except (OSError, SettingError):
        return None
    return None if folder is None else os.path.join(folder, key[:2], key[2:])


def _replace(path: str, contents: bytes) -> None:
    temporary = os.path.join(os.path.dirname(path), f"{WRITING}{os.urandom(8).hex()}")
    try:
        with open(temporary, "wb") as file:
            file.write(contents)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
