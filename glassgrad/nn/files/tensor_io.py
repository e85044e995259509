"""a tensor of bytes -> a file that is read; a function of a tensor -> one that takes paths, too."""

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
    """The bytes of a tensor, from front to back; parts of files are mapped when they are read.

    >>> file = TensorIO(Tensor(b"some bytes"))
    >>> file.read(4), file.seek(-5, 2), file.read()
    (b'some', 5, b'bytes')
    """

    def __init__(self, t: Tensor) -> None:
        if t.ndim != 1 or t.dtype is not dtypes.uint8:
            raise DTypeError(f"a file is one axis of uint8, not {t.shape} of {t.dtype.name}")
        self._tensor, self._place = t, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        target = memoryview(buffer).cast("B")
        stop = min(self._place + len(target), self._tensor.numel())
        count = max(stop - self._place, 0)
        if count:
            target[:count] = self._tensor[self._place : stop].data().cast("B")
        self._place += count
        return count

    def write(self, data: Any) -> int:
        raise io.UnsupportedOperation("this file is only read")

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._tensor.numel()}
        self._place = max(0, start[whence] + offset)
        return self._place


def accept_filename(func: Callable[[Tensor], T]) -> Callable[[Tensor | str | Path], T]:
    """Let a function of a tensor of bytes take the path of a file."""

    @functools.wraps(func)
    def taken(fn: Tensor | str | Path) -> T:
        return func(fn if isinstance(fn, Tensor) else Tensor(Path(fn)))

    return taken
