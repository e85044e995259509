"""Token files: token streams <-> mapped `.npy` files, and windows of them for training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glassgrad.base.errors import FormatError, ShapeError
from glassgrad.nn.files.atomic import write_atomically

if TYPE_CHECKING:
    import numpy as np

HEADER_BYTES = 128  # of a .npy file with one axis


def write_tokens(
    path: str | PathLike[str], chunks: Iterable[Sequence[int]], vocab_size: int
) -> int:
    """Write tokens, chunk by chunk, as a `.npy` file of the smallest dtype; returns their number.

    Chunks are iterated twice, first to count, so the data may be larger than memory: pass a list or
    an object that can be iterated again.
    """
    import numpy as np

    if iter(chunks) is chunks:
        raise TypeError("chunks are iterated twice, but a generator can be iterated only once")
    dtype = np.dtype(np.uint16 if vocab_size <= 1 << 16 else np.uint32)
    count = sum(len(chunk) for chunk in chunks)
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': ({count},), }}"
    head = b"\x93NUMPY\x01\x00" + (HEADER_BYTES - 10).to_bytes(2, "little")
    header = head + text.encode().ljust(HEADER_BYTES - 11) + b"\n"
    write_atomically(Path(path), _pieces(header, chunks, dtype, vocab_size))
    return count


def _pieces(
    header: bytes, chunks: Iterable[Sequence[int]], dtype: Any, vocab_size: int
) -> Iterator[bytes]:
    import numpy as np

    yield header
    for chunk in chunks:
        tokens = np.asarray(chunk)
        if tokens.size and not 0 <= int(tokens.min()) <= int(tokens.max()) < vocab_size:
            raise FormatError(f"tokens are not in the vocabulary of size {vocab_size}")
        yield tokens.astype(dtype).tobytes()


class TokenWindows:
    """Windows of `length` + 1 tokens of a mapped file: inputs, and targets one position later.

    A Loader takes it as data: batches are (batch, length + 1), of which [:, :-1] and [:, 1:] are
    inputs and targets. Windows start every `stride` tokens; the default is `length`.
    """

    def __init__(self, path: str | PathLike[str], length: int, stride: int | None = None) -> None:
        import numpy as np

        try:
            self.tokens = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise FormatError(f"{path} is not a token file: {error}") from None
        if self.tokens.ndim != 1 or self.tokens.dtype.kind != "u":
            raise FormatError(
                f"{path} holds {self.tokens.dtype} of shape {self.tokens.shape}, not tokens"
            )
        self.length, self.stride = length, length if stride is None else stride
        if len(self.tokens) <= length:
            raise ShapeError(
                f"{path} has {len(self.tokens)} tokens, but a window needs {length + 1}"
            )

    def __len__(self) -> int:
        return (len(self.tokens) - self.length - 1) // self.stride + 1

    def __getitem__(self, indices: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        import numpy as np

        starts = np.asarray(indices) * self.stride
        found = self.tokens[starts[..., None] + np.arange(self.length + 1)]
        return np.asarray(found, np.int32)
