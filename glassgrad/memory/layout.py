"""Shape and strides: contiguity, and the extent of elements in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from glassgrad.base.errors import AxisError

Ints = tuple[int, ...]


def contiguous_strides(shape: Ints, item_size: int = 1, row_major: bool = True) -> Ints:
    """The strides of contiguous elements, in units of which an item has `item_size`.

    >>> contiguous_strides((2, 3, 4)), contiguous_strides((2, 3), 4, row_major=False)
    ((12, 4, 1), (4, 8))
    """
    strides: list[int] = []
    step = item_size
    for size in reversed(shape) if row_major else shape:
        strides.append(step)
        step *= size
    return tuple(reversed(strides)) if row_major else tuple(strides)


def is_row_major(shape: Ints, strides: Ints, item_size: int = 1) -> bool:
    """Contiguous with the last axis fastest. Axes of size 1 may have any stride."""
    return _has_no_gaps(zip(reversed(shape), reversed(strides), strict=True), shape, item_size)


def is_column_major(shape: Ints, strides: Ints, item_size: int = 1) -> bool:
    """Contiguous with the first axis fastest."""
    return _has_no_gaps(zip(shape, strides, strict=True), shape, item_size)


def _has_no_gaps(axes: Iterable[tuple[int, int]], shape: Ints, step: int) -> bool:
    if 0 in shape:
        return True
    for size, stride in axes:
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def wrap_indices(indices: Sequence[Any], shape: Ints) -> Ints:
    """Nonnegative indices; negative ones count from the end, others out of range are errors."""
    if len(indices) != len(shape):
        raise AxisError(f"{len(indices)} indices were given for {len(shape)} axes")
    found = []
    for axis, (given, size) in enumerate(zip(indices, shape, strict=True)):
        if not hasattr(given, "__index__"):
            raise AxisError(f"a {type(given).__name__} is not an index", hint="use whole numbers")
        index = int(given.__index__())
        if not -size <= index < size:
            raise AxisError(f"index {index} is out of range for axis {axis} of size {size}")
        found.append(index + size if index < 0 else index)
    return tuple(found)


def extent(shape: Ints, strides: Ints) -> tuple[int, int]:
    """How far elements reach before and behind the first one, in units of the strides."""
    ends = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
    return -sum([end for end in ends if end < 0]), sum([end for end in ends if end > 0])
