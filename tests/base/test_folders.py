"""The cache folder: the user's own, unless one is set."""

from __future__ import annotations

from pathlib import Path

import pytest

from glassgrad.base.config import Context
from glassgrad.base.folders import cache_folder


@pytest.mark.parametrize(
    "system, variable, wanted",
    [
        ("linux", "XDG_CACHE_HOME", "/mine/glassgrad"),
        ("win32", "LOCALAPPDATA", "/mine/glassgrad"),
        ("darwin", "HOME", "/mine/Library/Caches/glassgrad"),
    ],
)
def test_every_system_has_a_place_for_it(
    monkeypatch: pytest.MonkeyPatch, system: str, variable: str, wanted: str
) -> None:
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setenv(variable, "/mine")
    with Context(CACHE=""):
        assert Path(cache_folder()) == Path(wanted)
    with Context(CACHE="/other"):
        assert Path(cache_folder()) == Path("/other")
