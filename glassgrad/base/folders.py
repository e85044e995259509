"""settings, system -> the folder where compiled kernels, downloads and results are kept."""

from __future__ import annotations

import os
import sys

from glassgrad.base.config import CACHE
from glassgrad.base.errors import SettingError


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


def _expanded(folder: str) -> str:
    found = os.path.expanduser(folder)
    if found.startswith("~"):
        raise SettingError("this user has no home folder", hint="set GLASSGRAD_CACHE to a folder")
    return found
