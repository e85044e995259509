"""Mapped files: bytes of a file, checked slices of them, and tensors that view them."""

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
MAX_AXES = 64
MAX_ELEMENTS = 1 << 48


def map_file(fn: Tensor | str | PathLike[str]) -> Bytes:
    """Map a file into memory; a uint8 Tensor is used as the content of a file."""
    if isinstance(fn, Tensor):
        if fn.dtype is not dtypes.uint8 or fn.ndim != 1:
            raise FormatError(
                f"a file must be a 1-dimensional uint8 tensor, not {fn.dtype.name} {fn.shape}"
            )
        return np.asarray(fn.numpy())
    path = Path(fn)
    if not path.stat().st_size:  # an empty file cannot be mapped
        return np.zeros(0, np.uint8)
    return np.memmap(path, np.uint8, "r")


def checked_slice(raw: Bytes, start: int, size: int, what: str) -> Bytes:
    """A slice of the bytes of a file; an error if the file is shorter."""
    if start < 0 or size < 0 or start + size > len(raw):
        raise FormatError(
            f"{what} should be bytes {start} to {start + size}, but the file has {len(raw)}",
            hint="the file is truncated or damaged",
        )
    return raw[start : start + size]


def tensor_view(raw: Bytes, dtype: DType, shape: tuple[int, ...]) -> Tensor:
    """A tensor of contiguous elements; it shares the memory if the bytes are aligned."""
    if 0 in shape:
        return Tensor.empty(*shape, dtype=dtype, requires_grad=False)
    assert len(raw) == prod(shape) * dtype.itemsize, "the caller checks sizes"
    if raw.ctypes.data % dtype.itemsize:
        raw = raw.copy()
    if dtype.format is None:  # NumPy has no bfloat16 and fp8
        unsigned = np.uint8 if dtype.itemsize == 1 else np.uint16
        bits = _shared(raw.view(unsigned).reshape(shape))
        return bits.bitcast(dtype).is_param_(is_param=False)
    return _shared(raw.view(dtype.name).reshape(shape))


def are_valid_sizes(numbers: Any) -> bool:
    """Non-negative ints with a plausible number and product, such as a shape."""
    return (
        isinstance(numbers, (tuple, list))
        and len(numbers) <= MAX_AXES
        and all(type(number) is int and 0 <= number < MAX_ELEMENTS for number in numbers)
        and prod(number for number in numbers if number) < MAX_ELEMENTS
    )


def _shared(array: Any) -> Tensor:
    """A tensor that shares the memory of an array and is not trained."""
    return Tensor.from_memory(array).is_param_(is_param=False)
