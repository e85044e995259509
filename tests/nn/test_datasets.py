"""Datasets from files that are made here; nothing is downloaded."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
from support.oracle import oracle

from glassgrad import dtypes
from glassgrad.base.config import Context
from glassgrad.base.errors import DownloadError, FormatError
from glassgrad.nn import datasets


def idx(array: np.ndarray) -> bytes:
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()


def images(count: int) -> np.ndarray:
    return np.random.default_rng(count).integers(0, 256, (count, 28, 28)).astype(np.uint8)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of MNIST's format where MNIST would be."""
    folder = tmp_path / "site"
    folder.mkdir()
    hashes = []
    arrays = [images(6), np.arange(6, dtype=np.uint8), images(2), np.arange(2, dtype=np.uint8)]
    for name, array in zip(datasets.NAMES, arrays, strict=True):
        packed = gzip.compress(idx(array))
        (folder / f"{name}-ubyte.gz").write_bytes(packed)
        hashes.append(hashlib.sha256(packed).hexdigest())
    base = f"{folder.as_uri()}/"
    monkeypatch.setattr(datasets, "MNIST", base)
    monkeypatch.setitem(datasets.HASHES, base, tuple(hashes))
    return folder


def test_mnist_is_downloaded_once_and_read(site: Path, tmp_path: Path) -> None:
    with Context(CACHE=str(tmp_path / "cache")):
        for _ in range(2):
            x, y, x_test, y_test = datasets.mnist()
            np.testing.assert_array_equal(x.numpy()[:, 0], images(6))
            assert (x.dtype, y.tolist()) == (dtypes.uint8, list(range(6)))
            assert (x_test.shape, y_test.shape) == ((2, 1, 28, 28), (2,))
            for file in site.iterdir():  # the second time they come from the cache
                file.unlink()


def test_a_file_that_has_changed_is_refused(site: Path, tmp_path: Path) -> None:
    (site / f"{datasets.NAMES[0]}-ubyte.gz").write_bytes(gzip.compress(b"other"))
    with (
        Context(CACHE=str(tmp_path / "cache")),
        pytest.raises(FormatError, match="has the SHA-256 hash"),
    ):
        datasets.mnist()


def test_without_a_network_the_error_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "CIFAR", "http://127.0.0.1:9/cifar.tar.gz")
    with Context(CACHE=str(tmp_path)), pytest.raises(DownloadError, match="is the machine online"):
        datasets.cifar()


@pytest.mark.parametrize(
    "bad", [b"", b"\0\0\7\1", b"\0\0\x08\x02\0\0\0", idx(images(2))[:-1], idx(images(2)) + b"1"]
)
def test_files_of_other_formats_are_refused(bad: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(bad)
    with pytest.raises(FormatError):
        datasets._read_idx(path)


def test_cifar_is_read_from_its_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).integers(0, 10, (6, 2, 3073)).astype(np.uint8)
    archive = tmp_path / "cifar.tar.gz"
    with tarfile.open(archive, "w:gz") as out:
        names = [*(f"data_batch_{n}.bin" for n in range(1, 6)), "test_batch.bin"]
        for name, part in zip(names, rows, strict=True):
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = part.nbytes
            out.addfile(member, io.BytesIO(part.tobytes()))
    monkeypatch.setattr(datasets, "CIFAR", archive.as_uri())
    monkeypatch.setattr(datasets, "CIFAR_HASH", hashlib.sha256(archive.read_bytes()).hexdigest())
    with Context(CACHE=str(tmp_path / "cache")):
        x, y, x_test, y_test = datasets.cifar()
    assert (x.shape, x_test.shape) == ((10, 3, 32, 32), (2, 3, 32, 32))
    assert y.tolist() == rows[:5, :, 0].flatten().tolist()
    assert y_test.tolist() == rows[5, :, 0].tolist()
    np.testing.assert_array_equal(x.numpy()[3].flatten(), rows[1, 1, 1:])


def test_digits_come_with_scikit_learn() -> None:
    oracle("sklearn")
    x, y, x_test, y_test = datasets.digits()
    assert (x.shape, x_test.shape) == ((1498, 1, 8, 8), (299, 1, 8, 8))
    assert x.numpy().max() == 16
    assert set(y_test.tolist()) == set(y.tolist()) == set(range(10))


def test_text_is_a_file_or_a_folder(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a.txt").write_text("first")
    (tmp_path / "b" / "c.txt").write_bytes(b"caf\xc3\xa9 \xff")
    (tmp_path / "d.py").write_text("code")
    assert datasets.text(tmp_path / "a.txt") == "first"
    assert datasets.text(tmp_path, "*.txt") == "first\ncafé \N{REPLACEMENT CHARACTER}"
    with pytest.raises(DownloadError, match="no such file or folder"):
        datasets.text(tmp_path / "none")
    with pytest.raises(DownloadError, match=r"matches \*\.md"):
        datasets.text(tmp_path, "*.md")


def test_files_that_are_no_text_are_left_out_of_a_folder_and_refused_alone(tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0\0")
    with pytest.raises(FormatError, match=r"no file under .* is text"):
        datasets.text(tmp_path)
    with pytest.raises(FormatError, match=r"picture\.png is not text"):
        datasets.text(tmp_path / "picture.png")
    (tmp_path / "a.txt").write_text("first")
    assert datasets.text(tmp_path) == "first"
