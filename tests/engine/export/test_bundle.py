"""Bundles: a round trip, and refusal of damaged files."""

from __future__ import annotations

from pathlib import Path

import pytest

from glassgrad.base.errors import FormatError
from glassgrad.engine.export.bundle import HEAD_BYTES, LINE_BYTES, MAGIC, read_bundle, write_bundle

PARTS = {"one": b"abc" * 50, "empty": b"", "two": bytes(range(256))}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_bundle(tmp_path / "f.glass", {"name": "f", "numbers": [1, 2]}, PARTS)
    return tmp_path / "f.glass"


def test_write_and_read_round_trip(path: Path) -> None:
    manifest, parts = read_bundle(path)
    assert manifest == {"name": "f", "numbers": [1, 2]}
    assert {name: bytes(part) for name, part in parts.items()} == PARTS


def test_no_temporary_files_are_left(path: Path) -> None:
    assert [found.name for found in path.parent.iterdir()] == ["f.glass"]


def test_writes_to_a_loaded_part_do_not_reach_the_file(path: Path) -> None:
    before = path.read_bytes()
    read_bundle(path).parts["one"][:3] = b"xyz"
    assert path.read_bytes() == before


def test_every_significant_byte_is_checked(path: Path) -> None:
    whole = path.read_bytes()
    manifest_bytes = whole.index(b'"parts"')
    places = [len(MAGIC), HEAD_BYTES - 8, HEAD_BYTES - 1, manifest_bytes, whole.index(b"abcabc")]
    for place in places:
        changed = bytearray(whole)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(FormatError, match="is damaged"):
            read_bundle(path)


def test_a_file_that_ends_too_early_is_refused(path: Path) -> None:
    whole = path.read_bytes()
    for length in (HEAD_BYTES + 1, len(whole) // 2, len(whole) - LINE_BYTES * 4):
        path.write_bytes(whole[:length])
        with pytest.raises(FormatError, match="is damaged"):
            read_bundle(path)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "is no export"),
        (b"\x7fELF and so on", "is no export"),
        (b"glassgrad export 1\n", "was exported by another version of glassgrad"),
        (b"glassgrad export 9\n", "was exported by another version of glassgrad"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, contents: bytes, message: str) -> None:
    path = tmp_path / "other"
    path.write_bytes(contents)
    with pytest.raises(FormatError, match=message):
        read_bundle(path)
