"""a file -> its bytes, mapped, and parts of them as tensors; every number is checked first."""

from __future__ import annotations

from math import prod
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import FormatError
from glassgrad.tensor.tensor import Tensor

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
MOST_AXES = 64
MOST_ELEMENTS = 1 << 48


def mapped(fn: Tensor | str | PathLike[str]) -> Bytes:
    """The bytes of a file, read when they are looked at; a Tensor of bytes is taken as one."""
    if isinstance(fn, Tensor):
        if fn.dtype is not dtypes.uint8 or fn.ndim != 1:
            raise FormatError(f"a file is one axis of uint8, not {fn.shape} of {fn.dtype.name}")
        return np.asarray(fn.numpy())
    path = Path(fn)
    if not path.stat().st_size:  # nothing cannot be mapped
        return np.zeros(0, np.uint8)
    return np.memmap(path, np.uint8, "r")


def part(raw: Bytes, start: int, size: int, what: str) -> Bytes:
    """Some bytes of a file that has them."""
    if start < 0 or size < 0 or start + size > len(raw):
        raise FormatError(
            f"{what} should be bytes {start} to {start + size} of a file of {len(raw)}",
            hint="the file is cut short, or damaged",
        )
    return raw[start : start + size]


def tensor(raw: Bytes, dtype: DType, shape: tuple[int, ...]) -> Tensor:
    """Bytes as elements, row by row; a window where they are aligned, else a copy."""
    if 0 in shape:
        return Tensor.empty(*shape, dtype=dtype, requires_grad=False)
    assert len(raw) == prod(shape) * dtype.itemsize, "the caller checks sizes"
    if raw.ctypes.data % dtype.itemsize:
        raw = raw.copy()
    if dtype.format is None:  # NumPy lacks bfloat16 and fp8
        plain = np.uint8 if dtype.itemsize == 1 else np.uint16
        made = _shared(raw.view(plain).reshape(shape)).bitcast(dtype)
        return made.is_param_(is_param=False)
    return _shared(raw.view(dtype.name).reshape(shape))


def are_sizes(numbers: Any) -> bool:
    """A shape: whole numbers from 0 on, not too many, whose product is no nonsense."""
    return (
        isinstance(numbers, (tuple, list))
        and len(numbers) <= MOST_AXES
        and all(type(number) is int and 0 <= number < MOST_ELEMENTS for number in numbers)
        and prod(number for number in numbers if number) < MOST_ELEMENTS
    )


def _shared(array: Any) -> Tensor:
    """The memory of an array, which nobody trains."""
    return Tensor.from_memory(array).is_param_(is_param=False)
