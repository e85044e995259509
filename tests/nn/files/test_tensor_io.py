"""Tensors of bytes as file objects."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from glassgrad import Tensor
from glassgrad.base.errors import DTypeError
from glassgrad.nn.state import TensorIO, accept_filename

TEXT = bytes(range(256)) * 4


def test_read_and_seek_are_those_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(TEXT)
    for tensor in (Tensor(TEXT), Tensor(tmp_path / "x")):
        ours, theirs = TensorIO(tensor), io.BytesIO(TEXT)
        for size in (0, 1, 100, 1000, 5):
            assert ours.read(size) == theirs.read(size)
            assert ours.tell() == theirs.tell()
        for offset, whence in ((10, 0), (-3, 1), (-20, 2), (5000, 0)):
            assert ours.seek(offset, whence) == theirs.seek(offset, whence)
            assert ours.read() == theirs.read()


def test_other_libraries_accept_it() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        info = tarfile.TarInfo("a")
        info.size = len(TEXT)
        archive.addfile(info, io.BytesIO(TEXT))
    with tarfile.open(fileobj=io.BufferedReader(TensorIO(Tensor(out.getvalue())))) as archive:
        member = archive.extractfile("a")
        assert member is not None
        assert member.read() == TEXT


def test_writing_and_other_tensors_are_refused() -> None:
    with pytest.raises(io.UnsupportedOperation):
        TensorIO(Tensor(TEXT)).write(b"x")
    with pytest.raises(DTypeError, match="1-dimensional uint8"):
        TensorIO(Tensor([1.0]))


def test_accept_filename(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(TEXT)
    count = accept_filename(lambda t: t.numel())
    assert count(tmp_path / "x") == count(str(tmp_path / "x")) == count(Tensor(TEXT)) == len(TEXT)
