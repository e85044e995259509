"""The cache folder: the user's, unless another one is set."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from glassgrad.base.config import Context
from glassgrad.base.errors import CacheWarning
from glassgrad.base.folders import IS_PRIVATE, cache_folder, private_folder


@pytest.mark.parametrize(
    "system, variable, wanted",
    [
        ("linux", "XDG_CACHE_HOME", "/mine/glassgrad"),
        ("win32", "LOCALAPPDATA", "/mine/glassgrad"),
        ("darwin", "HOME", "/mine/Library/Caches/glassgrad"),
    ],
)
def test_every_system_has_a_cache_folder(
    monkeypatch: pytest.MonkeyPatch, system: str, variable: str, wanted: str
) -> None:
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setenv(variable, "/mine")
    with Context(CACHE=""):
        assert Path(cache_folder()) == Path(wanted)
    with Context(CACHE="/other"):
        assert Path(cache_folder()) == Path("/other")


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    IS_PRIVATE.clear()
    with Context(CACHE=str(tmp_path / "cache")):
        yield tmp_path / "cache"
    IS_PRIVATE.clear()


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_new_folder_is_private(cache: Path) -> None:
    assert private_folder("objects") is None
    before = os.umask(0)
    try:
        assert private_folder("objects", create=True) == str(cache / "objects")
    finally:
        os.umask(before)
    assert (mode(cache), mode(cache / "objects")) == (0o700, 0o700)
    assert private_folder("objects") == str(cache / "objects")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="a system without owners of files")
@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("bits", [0o777, 0o770, 0o1777, 0o702])
def test_a_folder_that_others_can_write_to_is_not_used(cache: Path, bits: int, inner: bool) -> None:
    private_folder("objects", create=True)
    IS_PRIVATE.clear()
    (cache / "objects" if inner else cache).chmod(bits)
    with pytest.warns(CacheWarning, match="others can write to it") as found:
        assert private_folder("objects") is None
        assert private_folder("objects", create=True) is None
    assert len(found) == 1


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="a system without owners of files")
@pytest.mark.parametrize("bits", [0o755, 0o750, 0o700])
def test_a_folder_that_others_can_read_is_used(cache: Path, bits: int) -> None:
    private_folder("objects", create=True)
    IS_PRIVATE.clear()
    cache.chmod(bits)
    assert private_folder("objects") is not None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="a system without owners of files")
def test_a_folder_of_another_user_is_not_used(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private_folder("objects", create=True)
    IS_PRIVATE.clear()
    monkeypatch.setattr(os, "geteuid", lambda: cache.stat().st_uid + 1)
    with pytest.warns(CacheWarning, match="belongs to another user"):
        assert private_folder("objects") is None
