from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glassgrad import Tensor
from glassgrad.base.errors import FormatError
from glassgrad.nn.files.npy import npy_load, npy_save, npz_load

ARRAYS = {
    "floats": np.arange(6, dtype=np.float32).reshape(2, 3),
    "doubles": np.linspace(0, 1, 5),
    "bytes": np.arange(7, dtype=np.uint8),
    "bools": np.array([[True], [False]]),
    "scalar": np.array(3, np.int64),
    "empty": np.zeros((0, 4), np.float32),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "big-endian": np.arange(4, dtype=">i4"),
}


def npy_bytes(array: np.ndarray[Any, Any]) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_read_as_numpy_wrote_them(name: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", ARRAYS[name])
    found = npy_load(tmp_path / "x.npy").numpy()
    assert found.shape == ARRAYS[name].shape
    assert np.array_equal(found, ARRAYS[name])


def test_numpy_reads_what_we_write(tmp_path: Path) -> None:
    npy_save(Tensor(ARRAYS["floats"]).T, tmp_path / "x.npy")
    assert np.array_equal(np.load(tmp_path / "x.npy"), ARRAYS["floats"].T)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_archives_are_read(save: Any, tmp_path: Path) -> None:
    save(tmp_path / "x.npz", **ARRAYS)
    found = npz_load(tmp_path / "x.npz")
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert np.array_equal(found[name].numpy(), array)


def with_header(text: str, data: bytes = b"") -> bytes:
    raw = text.encode()
    return b"\x93NUMPY\x01\x00" + len(raw).to_bytes(2, "little") + raw + data


GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}"
CHANGES = {
    "nothing": (b"", "should be bytes 0 to 10"),
    "another file": (b"x" * 80, "is not a .npy file"),
    "truncated": (npy_bytes(ARRAYS["floats"])[:-1], "truncated"),
    "no dict": (with_header("[1, 2]"), "cannot be read"),
    "a call": (with_header("__import__('os').system('true')"), "cannot be read"),
    "deep": (with_header("(" * 5000), "cannot be read"),
    "objects": (with_header(GOOD.replace("<f4", "|O")), "only bools, ints and floats"),
    "text": (with_header(GOOD.replace("<f4", "<U4")), "only bools, ints and floats"),
    "complex": (with_header(GOOD.replace("<f4", "<c16")), "only bools, ints and floats"),
    "a negative size": (with_header(GOOD.replace("(2,)", "(-2,)")), "invalid shape"),
    "a huge size": (with_header(GOOD.replace("(2,)", "(1 << 60,)")), "cannot be read"),
    "huge sizes": (with_header(GOOD.replace("(2,)", f"({1 << 40}, {1 << 40})")), "invalid shape"),
    "past the end": (with_header(GOOD.replace("(2,)", "(1000000,)")), "truncated"),
    "a long header": (b"\x93NUMPY\x02\x00" + b"\xff" * 4 + b"x" * 99, "has 4294967295 bytes"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_invalid_files_are_refused(name: str) -> None:
    raw, message = CHANGES[name]
    with pytest.raises(FormatError, match=message):
        npy_load(Tensor(raw) if raw else Tensor.empty(0, dtype="uint8"))


def test_an_array_that_decompresses_to_more_than_announced_is_refused(tmp_path: Path) -> None:
    out = io.BytesIO()
    np.savez_compressed(out, x=np.zeros(100_000, np.float32))
    size = (400_000 + 128).to_bytes(4, "little")
    raw = out.getvalue()
    assert size in raw
    with pytest.raises(FormatError, match="does not decompress to 500 bytes"):
        npz_load(Tensor(raw.replace(size, (500).to_bytes(4, "little"))))


@pytest.mark.parametrize("name", ["bfloat16", "fp8e4m3", "fp8e5m2"])
def test_dtypes_that_numpy_lacks_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(FormatError, match=f"NumPy has no dtype {name}"):
        npy_save(Tensor([1.0]).cast(name), tmp_path / "x.npy")
    assert not list(tmp_path.iterdir())
