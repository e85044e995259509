"""Datasets: MNIST, CIFAR-10, digits and your own text; downloads are verified and cached."""

from __future__ import annotations

from math import prod
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glassgrad.base.errors import DownloadError, FormatError
from glassgrad.base.files import fetch
from glassgrad.tensor.tensor import Tensor

if TYPE_CHECKING:
    import numpy as np

Split = tuple[Tensor, Tensor, Tensor, Tensor]  # train images and labels, test images and labels

MNIST = "https://storage.googleapis.com/cvdf-datasets/mnist/"
FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
CIFAR = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
CIFAR_HASH = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
PROBED_BYTES = 8192  # of a file, to decide whether it is text
NAMES = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
HASHES = {  # SHA-256 of the gzip files, in the order of NAMES
    MNIST: (
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    ),
    FASHION: (
        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    ),
}


def mnist(device: str | None = None, fashion: bool = False) -> Split:
    """70,000 handwritten digits (or pieces of clothing), 28 x 28: uint8 (n, 1, 28, 28) and (n,)."""
    base = FASHION if fashion else MNIST
    paths = [
        fetch(f"{base}{name}-ubyte.gz", gunzip=True, sha256=digest)
        for name, digest in zip(NAMES, HASHES[base], strict=True)
    ]
    arrays = [_read_idx(path) for path in paths]
    images = [array[:, None] if array.ndim == 3 else array for array in arrays]
    return _tensors(images, device)


def _read_idx(path: Path) -> np.ndarray[Any, Any]:
    """The IDX format: two zeros, 8 for uint8, the number of axes, big-endian sizes, elements."""
    import numpy as np

    raw = np.fromfile(path, np.uint8)
    if len(raw) < 4 or raw[:3].tolist() != [0, 0, 8]:
        raise FormatError(f"{path} is not an IDX file of uint8")
    start = 4 + 4 * int(raw[3])
    shape = [int(size) for size in raw[4:start].view(">u4")] if len(raw) >= start else []
    if len(raw) - start != prod(shape):
        raise FormatError(f"{path} has {max(len(raw) - start, 0)} bytes of data instead of {shape}")
    return raw[start:].reshape(shape)


def cifar(device: str | None = None) -> Split:
    """CIFAR-10, 60,000 photographs of 10 classes: uint8 (n, 3, 32, 32) and (n,)."""
    import numpy as np

    folder = fetch(CIFAR, "cifar-10-binary.tar.gz", sha256=CIFAR_HASH, extract=True)
    names = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]
    raw = [np.fromfile(folder / "cifar-10-batches-bin" / name, np.uint8) for name in names]
    rows = [part.reshape(-1, 1 + 3 * 32 * 32) for part in raw]
    train, test = np.concatenate(rows[:-1]), rows[-1]
    images = [part[:, 1:].reshape(-1, 3, 32, 32) for part in (train, test)]
    return _tensors([images[0], train[:, 0], images[1], test[:, 0]], device)


def digits(device: str | None = None) -> Split:
    """1,797 handwritten digits, 8 x 8, from 0 to 16: uint8 (n, 1, 8, 8) and (n,); no download.

    Every sixth one is in the test set. They come with scikit-learn.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise DownloadError(
            "digits() needs scikit-learn", hint="pip install 'glassgrad[data]'"
        ) from None
    import numpy as np

    images, labels = load_digits(return_X_y=True)
    images, labels = images.reshape(-1, 1, 8, 8).astype(np.uint8), labels.astype(np.uint8)
    is_test = np.arange(len(labels)) % 6 == 5
    chosen = [images[~is_test], labels[~is_test], images[is_test], labels[is_test]]
    return _tensors(chosen, device)


def text(path: str | PathLike[str], pattern: str = "*") -> str:
    """The contents of a text file, or of all text files under a folder that match a pattern.

    Binary files are skipped.
    """
    source = Path(path)
    if source.is_dir():
        files = sorted(file for file in source.rglob(pattern) if file.is_file())
        if files and not (files := [file for file in files if _is_text(file)]):
            raise FormatError(f"no file under {source} that matches {pattern} is text")
    elif source.is_file():
        files = [source]
        if not _is_text(source):
            raise FormatError(f"{source} is not text: it contains zero bytes")
    else:
        raise DownloadError(f"no such file or folder: {source}")
    if not files:
        raise DownloadError(f"no file under {source} matches {pattern}")
    return "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files)


def _is_text(path: Path) -> bool:
    """True if the start of the file has no zero byte, as binary files nearly always do."""
    with path.open("rb") as file:
        return b"\0" not in file.read(PROBED_BYTES)


def _tensors(arrays: list[np.ndarray[Any, Any]], device: str | None) -> Split:
    import numpy as np

    train, labels, test, test_labels = (
        Tensor(np.ascontiguousarray(array), device=device, requires_grad=False) for array in arrays
    )
    return train, labels, test, test_labels
