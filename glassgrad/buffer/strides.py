"""a window and a movement -> another window on the same memory: slices, orders, repeats, shapes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

from glassgrad.base.errors import AxisError, ShapeError
from glassgrad.memory.layout import Ints, contiguous_strides, reach


class Window(NamedTuple):
    """Element (i, j) is at offset + i*strides[0] + j*strides[1]; all counted in elements."""

    shape: Ints
    strides: Ints
    offset: int


def whole_number(value: Any, what: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ShapeError(f"{what} is a whole number, not {value!r}")
    return int(value.__index__())


def shape_of(shape: Any, what: str = "a size") -> Ints:
    """One size or several, as ints that are not negative."""
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    found = tuple([whole_number(size, what) for size in sizes])
    if any(size < 0 for size in found):
        raise ShapeError(f"sizes cannot be negative, as in {found}")
    return found


def axis_of(axis: Any, ndim: int) -> int:
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise AxisError(f"an axis is a whole number, not {axis!r}")
    number = int(axis.__index__())
    if not -ndim <= number < ndim:
        raise AxisError(f"there is no axis {number} in a buffer of {ndim} axes")
    return number + ndim if number < 0 else number


def axes_of(axes: Any, ndim: int) -> Ints:
    """None for all, one axis or several; sorted."""
    if axes is None:
        return tuple(range(ndim))
    found = [axis_of(axis, ndim) for axis in (axes if isinstance(axes, (tuple, list)) else (axes,))]
    if len(set(found)) != len(found):
        raise AxisError(f"axes {axes} name one axis twice")
    return tuple(sorted(found))


# ---------------------------------------------------------------------- movements


def indexed(window: Window, key: Any) -> Window:
    """b[0], b[1:3, ::-1], b[..., 2]: whole numbers drop an axis, slices keep it."""
    keys = _full_key(key if isinstance(key, tuple) else (key,), len(window.shape))
    shape: list[int] = []
    strides: list[int] = []
    offset = window.offset
    for axis, (one, size, stride) in enumerate(
        zip(keys, window.shape, window.strides, strict=True)
    ):
        if isinstance(one, slice):
            start, stop, step = _sliced(one, size)
            count = len(range(start, stop, step))
            shape.append(count)
            strides.append(stride * step)
            offset += start * stride if count else 0
        else:
            offset += _place(one, axis, size) * stride
    return Window(tuple(shape), tuple(strides), offset)


def _full_key(keys: tuple[Any, ...], ndim: int) -> list[Any]:
    """One index or slice for each axis."""
    dots = [number for number, one in enumerate(keys) if one is Ellipsis]
    if len(dots) > 1:
        raise AxisError("only one '...' can be filled in")
    given = len(keys) - len(dots)
    if given > ndim:
        raise AxisError(f"{given} indices were given for {ndim} axes")
    at = dots[0] if dots else len(keys)
    rest = [slice(None)] * (ndim - given)
    return [*keys[:at], *rest, *keys[at + len(dots) :]]


def _sliced(one: slice, size: int) -> tuple[int, int, int]:
    if one.step == 0:
        raise AxisError("the step of a slice cannot be 0")
    try:
        return one.indices(size)
    except TypeError:
        raise AxisError(f"a slice is made of whole numbers, not {one}") from None


def _place(index: Any, axis: int, size: int) -> int:
    if isinstance(index, bool) or not hasattr(index, "__index__"):
        raise AxisError(
            f"a {type(index).__name__} is no index", hint="use whole numbers, slices and '...'"
        )
    number = int(index.__index__())
    if not -size <= number < size:
        raise AxisError(f"index {number} is outside axis {axis} of size {size}")
    return number + size if number < 0 else number


def permuted(window: Window, order: Any) -> Window:
    """Axis i of the result is axis order[i]."""
    found = tuple([axis_of(axis, len(window.shape)) for axis in order])
    if sorted(found) != list(range(len(window.shape))):
        raise AxisError(f"{tuple(order)} is no order of {len(window.shape)} axes")
    shape = tuple([window.shape[axis] for axis in found])
    return Window(shape, tuple([window.strides[axis] for axis in found]), window.offset)


def flipped(window: Window, axes: Any) -> Window:
    """The axes reversed."""
    strides, offset = list(window.strides), window.offset
    for axis in axes_of(axes, len(window.shape)):
        offset += max(window.shape[axis] - 1, 0) * strides[axis]
        strides[axis] = -strides[axis]
    return Window(window.shape, tuple(strides), offset)


def expanded(window: Window, shape: Ints) -> Window:
    """Axes of size 1 repeated, and new ones in front: their stride is 0."""
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


def inferred(shape: Any, count: int) -> Ints:
    """A shape for so many elements, where one size may be -1."""
    sizes = [
        whole_number(n, "a size") for n in (shape if isinstance(shape, (tuple, list)) else (shape,))
    ]
    if sizes.count(-1) == 1:
        rest = prod(size for size in sizes if size != -1)
        if rest and count % rest == 0:
            sizes[sizes.index(-1)] = count // rest
    found = tuple(sizes)
    if any(size < 0 for size in found) or prod(found) != count:
        raise ShapeError(f"{count} elements do not fill the shape {found}")
    return found


def reshaped(window: Window, shape: Ints) -> Window | None:
    """The same elements in another shape, if strides can say it; else None.

    Old and new axes are matched in groups of equal size; within a group the old axes must lie
    like one.
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
        step = _as_one(old[first:at])
        if step is None:
            return None
        strides.extend([step * stride for stride in contiguous_strides(tuple(group))])
    return Window(shape, tuple(strides), window.offset)


def _as_one(axes: Sequence[tuple[int, int]]) -> int | None:
    """The stride of axes that can be walked through as one."""
    for (_, outer), (size, inner) in pairwise(axes):
        if outer != size * inner:
            return None
    return axes[-1][1]


# ---------------------------------------------------------------------- overlaps


def meets_itself(window: Window) -> bool:
    """Whether two elements may be at one place: repeated axes, overlapping windows."""
    axes = sorted((abs(s), n) for n, s in zip(window.shape, window.strides, strict=True) if n > 1)
    covered = 0
    for stride, size in axes:
        if stride <= covered:
            return True
        covered += stride * (size - 1)
    return False


def span(window: Window) -> tuple[int, int]:
    """The first and the last place that the elements take."""
    before, behind = reach(window.shape, window.strides)
    return window.offset - before, window.offset + behind
