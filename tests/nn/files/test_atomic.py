"""Files that appear as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from glassgrad.nn.files.atomic import written_whole


def broken() -> Iterator[bytes]:
    yield b"first"
    raise RuntimeError("stopped")


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "x"
    written_whole(path, [b"old ", memoryview(b"one")])
    with pytest.raises(RuntimeError, match="stopped"):
        written_whole(path, broken())
    assert path.read_bytes() == b"old one"
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_is_called_by_its_own_name(tmp_path: Path) -> None:
    path = tmp_path / "none" / "x"
    with pytest.raises(FileNotFoundError) as found:
        written_whole(path, [b""])
    assert found.value.filename == str(path)


def test_what_cannot_be_read_meanwhile_keeps_its_name(tmp_path: Path) -> None:
    def parts() -> Iterator[bytes]:
        yield (tmp_path / "other").read_bytes()

    with pytest.raises(FileNotFoundError) as found:
        written_whole(tmp_path / "x", parts())
    assert found.value.filename == str(tmp_path / "other")


def test_permissions_are_those_of_the_old_file_or_of_any_new_one(tmp_path: Path) -> None:
    plain, path = tmp_path / "plain", tmp_path / "x"
    plain.touch()
    written_whole(path, [b""])
    assert path.stat().st_mode == plain.stat().st_mode
    path.chmod(0o600)
    written_whole(path, [b"2"])
    assert path.stat().st_mode & 0o777 == 0o600
