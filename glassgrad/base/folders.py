"""settings, system -> the folder where compiled kernels, downloads and results are kept.

What is found there is run as code. So it is only used if no other user can have written to it.
"""

from __future__ import annotations

import os
import sys

from glassgrad.base.config import CACHE
from glassgrad.base.errors import CacheWarning, SettingError

OTHERS_WRITE = 0o022  # permission bits: the group, or everybody, may write
LOOKED_AT: dict[str, bool] = {}  # folders, and whether they are private


def cache_folder() -> str:
    """GLASSGRAD_CACHE, or the place where this system's users keep such things.

    A text: what every start of a process needs does without `pathlib`, which takes long to import.
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
    """A folder inside of the cache folder; None if it is not there or others may write to it.

    The second is said once. OSError if it cannot be made or looked at.
    """
    outer = cache_folder()
    path = os.path.join(outer, name)
    if create:
        make_private(outer)
        make_private(path)
    found = LOOKED_AT.get(path)
    if found is None:
        if not os.path.isdir(path):
            return None
        found = LOOKED_AT[path] = is_private(outer) and is_private(path)
        if not found:
            _warn(path if is_private(outer) else outer)
    return path if found else None


def make_private(path: str) -> None:
    """Make a folder that only this user can use, if it is not there."""
    os.makedirs(path, mode=0o700, exist_ok=True)


def is_private(path: str) -> bool:
    """Whether a folder is ours, and nobody else may write to it."""
    if not hasattr(os, "geteuid"):
        return True
    found = os.stat(path)
    return found.st_uid == os.geteuid() and not found.st_mode & OTHERS_WRITE


def _warn(path: str) -> None:
    import warnings

    warnings.warn(
        f"{path} belongs to another user, or others may write to it: nothing is kept there, and "
        "nothing is read from there\n  hint: make it private (chmod 700), or set GLASSGRAD_CACHE",
        CacheWarning,
        stacklevel=3,
    )


def _expanded(folder: str) -> str:
    found = os.path.expanduser(folder)
    if found.startswith("~"):
        raise SettingError("this user has no home folder", hint="set GLASSGRAD_CACHE to a folder")
    return found
