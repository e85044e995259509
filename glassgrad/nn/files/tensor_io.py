"""TensorIO: a tensor of bytes as a file object; and a decorator for functions of file contents."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import DTypeError
from glassgrad.tensor.tensor import Tensor

T = TypeVar("T")


class TensorIO(io.RawIOBase):
    """A read-only file object of the bytes of a tensor.

    >>> file = TensorIO(Tensor(b"some bytes"))
    >>> file.read(4), file.seek(-5, 2), file.read()
    (b'some', 5, b'bytes')
    """

    def __init__(self, t: Tensor) -> None:
        if t.ndim != 1 or t.dtype is not dtypes.uint8:
            raise DTypeError(
                f"a file must be a 1-dimensional uint8 tensor, not {t.dtype.name} {t.shape}"
            )
        self._tensor, self._position = t, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        target = memoryview(buffer).cast("B")
        stop = min(self._position + len(target), self._tensor.numel())
        count = max(stop - self._position, 0)
        if count:
            target[:count] = self._tensor[self._position : stop].data().cast("B")
        self._position += count
        return count

    def write(self, data: Any) -> int:
        raise io.UnsupportedOperation("a TensorIO is read-only")

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._tensor.numel()}
        self._position = max(0, start[whence] + offset)
        return self._position


def accept_filename(func: Callable[[Tensor], T]) -> Callable[[Tensor | str | Path], T]:
    """Let a function of a tensor of bytes take the path of a file, too."""

    @functools.wraps(func)
    def wrapper(fn: Tensor | str | Path) -> T:
        return func(fn if isinstance(fn, Tensor) else Tensor(Path(fn)))

    return wrapper
