from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from support.files.gguf import gguf_file

from glassgrad import Tensor
from glassgrad.base.errors import FormatError
from glassgrad.nn.files.gguf import gguf_load
from glassgrad.nn.files.gguf_dequantise import FORMATS

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_metadata_of_every_type_is_read(tmp_path: Path) -> None:
    metadata = {
        "a": ("u8", 200), "b": ("i8", -3), "c": ("u16", 60000), "d": ("i16", -300),
        "e": ("u32", 1 << 31), "f": ("i32", -5), "g": ("f32", 0.5), "h": ("bool", True),
        "i": ("str", "naïve"), "j": ("u64", 1 << 63), "k": ("i64", -(1 << 62)), "l": ("f64", 0.1),
        "m": ("[str]", ["x", "yz"]), "n": ("[i32]", [1, -2, 3]),
    }  # fmt: skip
    (tmp_path / "x.gguf").write_bytes(gguf_file(metadata, {}))
    found, tensors = gguf_load(tmp_path / "x.gguf")
    assert tensors == {}
    assert found.pop("n").tolist() == [1, -2, 3]
    assert found == {key: value for key, (_, value) in metadata.items() if key != "n"}


def test_plain_tensors_are_views_of_the_file(tmp_path: Path) -> None:
    arrays = {"x": X, "half": X.astype(np.float16), "whole": X.astype(np.int64)}
    (tmp_path / "x.gguf").write_bytes(gguf_file({}, arrays))
    _, found = gguf_load(str(tmp_path / "x.gguf"))
    for name, array in arrays.items():
        assert np.array_equal(found[name].numpy(), array)
        assert not found[name].numpy().flags.writeable


def test_bfloat16_is_read() -> None:
    raw = (X.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    _, found = gguf_load(Tensor(gguf_file({}, {"x": (30, (3, 4), raw)})))
    assert found["x"].dtype.name == "bfloat16"
    assert np.array_equal(found["x"].float().numpy(), X)


@pytest.mark.parametrize("kind", FORMATS)
def test_quantised_tensors_are_float32(kind: int) -> None:
    block_size, block_bytes, dequantise = FORMATS[kind]
    blocks = np.random.default_rng(1).integers(0, 60, (6, block_bytes), np.uint8)
    file = gguf_file({}, {"first": X, "x": (kind, (3, 2 * block_size), blocks.tobytes())})
    _, found = gguf_load(Tensor(file))
    assert np.array_equal(found["x"].numpy(), dequantise(blocks).reshape(3, 2 * block_size))


def test_the_alignment_of_the_file_is_used() -> None:
    _, found = gguf_load(Tensor(gguf_file({"general.alignment": ("u32", 128)}, {"x": X}, 128)))
    assert np.array_equal(found["x"].numpy(), X)


def parts(count: int = 2, **changes: tuple[str, int]) -> list[bytes]:
    """A split file with tensors a and b; only the first part has other metadata."""
    split = {"split.count": ("u16", count), "split.tensors.count": ("i32", 2)}
    split |= {key.replace("__", "."): value for key, value in changes.items()}
    first = gguf_file({"k": ("u32", 7), "split.no": ("u16", 0), **split}, {"a": X})
    return [first, gguf_file({"split.no": ("u16", 1), **split}, {"b": X + 1})]


@pytest.mark.parametrize("given", [1, 2])
def test_a_split_file_is_read_from_any_part(given: int, tmp_path: Path) -> None:
    for number, part in enumerate(parts(), 1):
        (tmp_path / f"x-{number:05}-of-00002.gguf").write_bytes(part)
    metadata, found = gguf_load(tmp_path / f"x-{given:05}-of-00002.gguf")
    assert metadata["k"] == 7
    assert np.array_equal(found["a"].numpy(), X)
    assert np.array_equal(found["b"].numpy(), X + 1)


def test_parts_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    names = [tmp_path / f"x-{number:05}-of-00002.gguf" for number in (1, 2)]
    first, _ = parts()
    names[0].write_bytes(first)
    with pytest.raises(FormatError, match=r"is missing: x-00002-of-00002\.gguf"):
        gguf_load(names[0])
    names[1].write_bytes(first)
    with pytest.raises(FormatError, match=r"x-00002-of-00002\.gguf is not part 2 of 2"):
        gguf_load(names[0])
    for name, part in zip(names, parts(split__tensors__count=("i32", 3)), strict=True):
        name.write_bytes(part)
    with pytest.raises(FormatError, match="have 2 tensors instead of 3"):
        gguf_load(names[0])
    (tmp_path / "x.gguf").write_bytes(first)
    for fn in (tmp_path / "x.gguf", Tensor(first)):
        with pytest.raises(FormatError, match="one of 2 parts, but its name"):
            gguf_load(fn)


GOOD = gguf_file({"k": ("u32", 1)}, {"x": X})
CHANGES = {
    "nothing": (b"", "a value should be bytes 0 to 4"),
    "no GGUF": (b"GGML" + GOOD[4:], "does not start with GGUF"),
    "another version": (b"GGUF" + struct.pack("<I", 9) + GOOD[8:], "version 9"),
    "truncated": (GOOD[:-20], "the file is truncated"),
    "too many tensors": (GOOD[:8] + struct.pack("<Q", 1 << 40) + GOOD[16:], "entries do not fit"),
    "too much metadata": (GOOD[:16] + struct.pack("<Q", 1 << 60) + GOOD[24:], "entries do not fit"),
    "a long name": (
        GOOD[:24] + struct.pack("<Q", 1 << 50) + GOOD[32:],
        "at most 65536 are allowed",
    ),
    "a huge array": (
        gguf_file({"k": ("[f32]", [1.0])}, {}).replace(
            struct.pack("<IIQ", 9, 6, 1), struct.pack("<IIQ", 9, 6, 1 << 60)
        ),
        "entries do not fit",
    ),
    "an odd alignment": (
        gguf_file({"general.alignment": ("u32", 3)}, {"x": X}),
        "multiple of 8, not 3",
    ),
    "an unknown value type": (
        GOOD.replace(b"k\x04\0\0\0", b"k\x63\0\0\0"),
        "unknown value type 99",
    ),
    "an unknown tensor type": (gguf_file({}, {"x": (99, (4,), b"")}), "unknown type 99"),
    "half a block": (gguf_file({}, {"x": (2, (33,), b"")}), "must be a multiple of 32"),
    "a huge shape": (gguf_file({}, {"x": (0, (1 << 40, 1 << 40), b"")}), "invalid shape"),
    "past the end": (gguf_file({}, {"x": (0, (1 << 30,), b"")}), "the file is truncated"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_invalid_files_are_refused(name: str) -> None:
    raw, message = CHANGES[name]
    with pytest.raises(FormatError, match=message):
        gguf_load(Tensor(raw) if raw else Tensor.empty(0, dtype="uint8"))
