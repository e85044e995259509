"""key -> object code: what was compiled once on this machine is read from disk the next time.

Nothing here may fail: a folder that cannot be written is a cache that forgets, a damaged file is a
miss. Files appear by renaming, so processes that write at once, or die while writing, do no harm.
"""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from pathlib import Path

from glassgrad.base.config import CACHE, CACHELEVEL

MAGIC = b"glassgrad object 1\n"
DIGEST_BYTES = 32
MOST_BYTES = 1 << 30  # what the folder may hold before the oldest entries go


def object_key(*parts: str) -> str:
    """One name for everything that the code depends on."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(f"{len(encoded)}:".encode())
        digest.update(encoded)
    return digest.hexdigest()


def cache_folder() -> Path:
    """GLASSGRAD_CACHE, or the place where this system's users keep such things."""
    if CACHE.value:
        return Path(CACHE.value)
    if sys.platform == "darwin":
        return Path("~/Library/Caches/glassgrad").expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", "~/AppData/Local")).expanduser() / "glassgrad"
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "glassgrad"


def read_object(key: str) -> bytes | None:
    """The object code kept under a key, if it is there and whole."""
    if not CACHELEVEL:
        return None
    try:
        stored = _path(key).read_bytes()
    except (OSError, RuntimeError):
        return None
    start = len(MAGIC) + DIGEST_BYTES
    code = stored[start:]
    is_whole = stored[:start] == MAGIC + hashlib.sha256(code).digest()
    return code if is_whole else None


def write_object(key: str, code: bytes) -> None:
    """Keep object code under a key, or do nothing if the disk does not let us."""
    if not CACHELEVEL:
        return
    with suppress(OSError, RuntimeError):
        path = _path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, MAGIC + hashlib.sha256(code).digest() + code)
        if key.startswith("00"):  # one key in 256: looking at every file each time would be slow
            prune(MOST_BYTES)


def clear() -> None:
    """Forget everything that was compiled."""
    prune(0)


def prune(most_bytes: int) -> None:
    """Remove the oldest entries, and what killed writers left, until no more than this is kept."""
    with suppress(OSError, RuntimeError):
        files = [(path.stat(), path) for path in (cache_folder() / "objects").glob("*/*")]
        files.sort(key=lambda file: file[0].st_mtime)
        total = sum(stat.st_size for stat, _ in files)
        for stat, path in files:
            if total <= most_bytes:
                break
            path.unlink(missing_ok=True)
            total -= stat.st_size


def _path(key: str) -> Path:
    return cache_folder() / "objects" / key[:2] / key[2:]


def _replace(path: Path, contents: bytes) -> None:
    temporary = path.with_name(f".writing-{os.urandom(8).hex()}")
    try:
        temporary.write_bytes(contents)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
