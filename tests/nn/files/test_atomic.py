"""Atomic writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from glassgrad.nn.files.atomic import write_atomically


def failing() -> Iterator[bytes]:
    yield b"first"
    raise RuntimeError("stopped")


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_atomically(path, [b"old ", memoryview(b"one")])
    with pytest.raises(RuntimeError, match="stopped"):
        write_atomically(path, failing())
    assert path.read_bytes() == b"old one"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_names_the_file_and_not_the_temporary_one(tmp_path: Path) -> None:
    path = tmp_path / "none" / "x"
    with pytest.raises(FileNotFoundError) as found:
        write_atomically(path, [b""])
    assert found.value.filename == str(path)


def test_errors_about_other_files_are_not_changed(tmp_path: Path) -> None:
    def parts() -> Iterator[bytes]:
        yield (tmp_path / "other").read_bytes()

    with pytest.raises(FileNotFoundError) as found:
        write_atomically(tmp_path / "x", parts())
    assert found.value.filename == str(tmp_path / "other")


def test_permissions_are_those_of_the_old_file_or_of_a_new_file(tmp_path: Path) -> None:
    plain, path = tmp_path / "plain", tmp_path / "x"
    plain.touch()
    write_atomically(path, [b""])
    assert path.stat().st_mode == plain.stat().st_mode
    path.chmod(0o600)
    write_atomically(path, [b"2"])
    assert path.stat().st_mode & 0o777 == 0o600
