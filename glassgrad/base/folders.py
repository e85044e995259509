"""Settings and system -> the folder for compiled kernels, downloads and results.

Its contents are executed, so it is used only if no other user can write to it.
"""

from __future__ import annotations

import os
import sys

from glassgrad.base.config import CACHE
from glassgrad.base.errors import CacheWarning, SettingError

WRITABLE_BY_OTHERS = 0o022  # permission bits of group and others
IS_PRIVATE: dict[str, bool] = {}  # folder -> the result of the check


def cache_folder() -> str:
    """GLASSGRAD_CACHE, or the system's usual folder for caches.

    A str, as importing `pathlib` would slow down every start.
    """
    if CACHE.value:
        return CACHE.value
    if sys.platform == "darwin":
        return _expanded("~/Library/Caches/glassgrad")
    if sys.platform == "win32":
        own = os.environ.get("LOCALAPPDATA", "~/AppData/Local")
    else:
        own = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return os.path.join(_expanded(own), "glassgrad")


def private_folder(name: str, create: bool = False) -> str | None:
    """A folder inside the cache folder; None if it does not exist or others can write to it.

    Warns once about the latter. Raises OSError if it cannot be created or inspected.
    """
    outer = cache_folder()
    path = os.path.join(outer, name)
    if create:
        make_private(outer)
        make_private(path)
    found = IS_PRIVATE.get(path)
    if found is None:
        if not os.path.isdir(path):
            return None
        found = IS_PRIVATE[path] = is_private(outer) and is_private(path)
        if not found:
            _warn(path if is_private(outer) else outer)
    return path if found else None


def make_private(path: str) -> None:
    """Create a folder that only this user can access, if it does not exist."""
    os.makedirs(path, mode=0o700, exist_ok=True)


def is_private(path: str) -> bool:
    """True if a folder is ours and nobody else can write to it."""
    if not hasattr(os, "geteuid"):
        return True
    found = os.stat(path)
    return found.st_uid == os.geteuid() and not found.st_mode & WRITABLE_BY_OTHERS


def _warn(path: str) -> None:
    import warnings

    warnings.warn(
        f"{path} belongs to another user, or others can write to it, so it is not used as a "
        "cache\n  hint: make it private (chmod 700), or set GLASSGRAD_CACHE",
        CacheWarning,
        stacklevel=3,
    )


def _expanded(folder: str) -> str:
    found = os.path.expanduser(folder)
    if found.startswith("~"):
        raise SettingError("this user has no home folder", hint="set GLASSGRAD_CACHE to a folder")
    return found
