"""Fuzzing of readers: ten thousand damaged files are read or refused with a FormatError."""

from __future__ import annotations

import io
import pickle
import random
import tracemalloc
import zipfile
from argparse import Namespace
from collections import Counter
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pytest
from support.files.gguf import gguf_file
from support.files.torch import archive_of, old_torch_file, torch_file

from glassgrad import Tensor
from glassgrad.base.errors import FormatError
from glassgrad.nn.files.archive import tar_extract, zip_extract
from glassgrad.nn.files.gguf import gguf_load
from glassgrad.nn.files.npy import npy_load, npz_load
from glassgrad.nn.files.pytorch import torch_load

X = np.arange(60, dtype=np.float32).reshape(3, 20)
FILES_PER_READER = 1300
MAX_MEMORY = 4_000_000  # bytes; the files have a few thousand


def _npy() -> bytes:
    out = io.BytesIO()
    np.save(out, X)
    return out.getvalue()


def _npz() -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, x=X, y=X.T)
    return out.getvalue()


def _zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a", b"1" * 50)
        archive.writestr("b/c", b"2" * 60)
    return out.getvalue()


def _tar() -> bytes:
    import tarfile

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in ("a", "b/c"):
            info = tarfile.TarInfo(name)
            info.size = 600
            archive.addfile(info, io.BytesIO(b"3" * 600))
    return out.getvalue()


def _gguf() -> bytes:
    blocks = np.arange(2 * 144, dtype=np.uint8).tobytes()
    metadata = {
        "general.architecture": ("str", "llama"), "n": ("u32", 7), "names": ("[str]", ["a", "b"]),
        "ids": ("[i32]", [1, 2, 3]),
    }  # fmt: skip
    return gguf_file(metadata, {"x": X, "y": (12, (1, 512), blocks)})


def _objects() -> bytes:
    """A checkpoint of plain objects."""
    given = {
        "loss": np.float32(0.5), "x": X, "args": Namespace(lr=0.1, path=PurePosixPath("a/b")),
        "tags": {"a", "b"}, "n": range(3), "c": Counter("aab"),
    }  # fmt: skip
    return archive_of(pickle.dumps(given, 2), [])


READERS: dict[str, tuple[Callable[[Any], Any], bytes]] = {
    "npy": (npy_load, _npy()),
    "npz": (npz_load, _npz()),
    "zip": (zip_extract, _zip()),
    "tar": (tar_extract, _tar()),
    "gguf": (gguf_load, _gguf()),
    "torch": (torch_load, torch_file({"x": X, "y": [X.T, 3, "text"], "n": None})),
    "torch objects": (torch_load, _objects()),
    "old torch": (torch_load, old_torch_file({"x": X, "y": [X.T, 3, "text"], "n": None})),
}


def damaged(raw: bytes, rng: random.Random) -> bytes:
    """Replaced bytes, runs of 0 or 255, moved or deleted parts, a truncated end."""
    data = bytearray(raw)
    for _ in range(rng.choice((1, 1, 1, 2, 5, 20))):
        position = rng.randrange(len(data))
        match rng.randrange(5):
            case 0:
                data[position] = rng.randrange(256)
            case 1:
                data[position] ^= 1 << rng.randrange(8)
            case 2:
                run = rng.choice((2, 4, 8))
                data[position : position + run] = bytes([rng.choice((0, 255, 127))]) * run
            case 3:
                other = rng.randrange(len(data))
                data[position : position + 8] = data[other : other + 8]
            case 4:
                del data[position : position + rng.choice((1, 7, 200))]
        data = data or bytearray(b"\0")
    if not rng.randrange(8):
        del data[rng.randrange(len(data)) + 1 :]
    return bytes(data)


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_read_or_refused(name: str) -> None:
    read, raw = READERS[name]
    read(Tensor(raw))
    refused = 0
    for number in range(FILES_PER_READER):
        file = damaged(raw, random.Random(f"{name} {number}"))
        try:
            read(Tensor(file))
        except FormatError:
            refused += 1
    assert refused > FILES_PER_READER // 20


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_take_little_memory(name: str) -> None:
    read, raw = READERS[name]
    tracemalloc.start()
    try:
        for number in range(100):
            try:
                read(Tensor(damaged(raw, random.Random(f"memory {name} {number}"))))
            except FormatError:
                pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MAX_MEMORY
