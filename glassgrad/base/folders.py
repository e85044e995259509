"""settings, system -> the folder where compiled kernels, downloads and results are kept."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from glassgrad.base.config import CACHE


def cache_folder() -> Path:
    """GLASSGRAD_CACHE, or the place where this system's users keep such things."""
    if CACHE.value:
        return Path(CACHE.value)
    if sys.platform == "darwin":
        return Path("~/Library/Caches/glassgrad").expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", "~/AppData/Local")).expanduser() / "glassgrad"
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "glassgrad"
