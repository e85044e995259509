"""Window and movement op -> another window on the same memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple

from glassgrad.base.errors import ShapeError
from glassgrad.memory.layout import Ints, contiguous_strides, extent


class Window(NamedTuple):
    """Element (i, j) is at offset + i*strides[0] + j*strides[1]; all counted in elements."""

    shape: Ints
    strides: Ints
    offset: int


def shrunk(window: Window, bounds: Sequence[tuple[int, int]]) -> Window:
    """The elements from start to stop of each axis."""
    shape = tuple([stop - start for start, stop in bounds])
    steps = zip(bounds, window.strides, strict=True)
    return Window(shape, window.strides, window.offset + sum(start * s for (start, _), s in steps))


def permuted(window: Window, order: Ints) -> Window:
    """Axis i of the result is axis order[i]."""
    shape = tuple([window.shape[axis] for axis in order])
    return Window(shape, tuple([window.strides[axis] for axis in order]), window.offset)


def flipped(window: Window, axes: Ints) -> Window:
    """The axes reversed."""
    strides, offset = list(window.strides), window.offset
    for axis in axes:
        offset += max(window.shape[axis] - 1, 0) * strides[axis]
        strides[axis] = -strides[axis]
    return Window(window.shape, tuple(strides), offset)


def windowed(window: Window, arg: tuple[int, int, int, int]) -> Window:
    """Sliding windows along an axis; the elements of each window become a new last axis.

    Every n-th element of an axis is a window of size 1 with step n.
    """
    axis, size, step, dilation = arg
    count = (window.shape[axis] - dilation * (size - 1) - 1) // step + 1
    shape, strides = list(window.shape), list(window.strides)
    shape[axis], strides[axis] = count, strides[axis] * step
    inside = window.strides[axis] * dilation
    return Window((*shape, size), (*strides, inside), window.offset)


def expanded(window: Window, shape: Ints) -> Window:
    """Axes of size 1 repeated, and new axes in front, with stride 0."""
    missing = len(shape) - len(window.shape)
    strides = [0] * missing
    is_fine = missing >= 0
    for have, stride, want in zip(window.shape, window.strides, shape[missing:], strict=False):
        is_fine = is_fine and have in (1, want)
        strides.append(stride if have == want else 0)
    if not is_fine:
        raise ShapeError(
            f"cannot expand {window.shape} to {shape}", hint="only axes of size 1 can be repeated"
        )
    return Window(shape, tuple(strides), window.offset)


def reshaped(window: Window, shape: Ints) -> Window | None:
    """The same elements in another shape; None if no strides describe it.

    Old and new axes are matched in groups of equal size; the old axes of a group must be mergeable
    into one.
    """
    if 0 in shape:
        return Window(shape, contiguous_strides(shape), window.offset)
    old = [(n, s) for n, s in zip(window.shape, window.strides, strict=True) if n != 1]
    strides: list[int] = []
    at = 0
    rest = list(shape)
    while rest:
        size = rest.pop(0)
        group = [size]
        if size == 1:
            strides.append(1)
            continue
        have, first = 1, at
        while have != prod(group):
            if have < prod(group):
                have *= old[at][0]
                at += 1
            else:
                group.append(rest.pop(0))
        step = _combined_stride(old[first:at])
        if step is None:
            return None
        strides.extend([step * stride for stride in contiguous_strides(tuple(group))])
    return Window(shape, tuple(strides), window.offset)


def _combined_stride(axes: Sequence[tuple[int, int]]) -> int | None:
    """The stride of axes merged into one; None if they cannot be merged."""
    for (_, outer), (size, inner) in pairwise(axes):
        if outer != size * inner:
            return None
    return axes[-1][1]


# ---------------------------------------------------------------------- overlaps


def has_overlaps(window: Window) -> bool:
    """True if two elements may share an address: repeated axes, overlapping windows."""
    if 0 in window.shape:
        return False
    axes = sorted((abs(s), n) for n, s in zip(window.shape, window.strides, strict=True) if n > 1)
    covered = 0
    for stride, size in axes:
        if stride <= covered:
            return True
        covered += stride * (size - 1)
    return False


def span(window: Window) -> tuple[int, int]:
    """The lowest and highest element offset."""
    before, behind = extent(window.shape, window.strides)
    return window.offset - before, window.offset + behind
