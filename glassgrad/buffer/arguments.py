"""Arguments of Buffer methods -> checked sizes, axes and windows."""

from __future__ import annotations

from math import prod
from typing import Any

from glassgrad.base.errors import AxisError, ShapeError
from glassgrad.memory.layout import Ints
from glassgrad.memory.window import Window


def whole_number(value: Any, what: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ShapeError(f"{what} is a whole number, not {value!r}")
    return int(value.__index__())


def shape_of(shape: Any, what: str = "a size") -> Ints:
    """One size or several, as non-negative ints."""
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
    """None (all axes), one axis or several, sorted."""
    if axes is None:
        return tuple(range(ndim))
    found = [axis_of(axis, ndim) for axis in (axes if isinstance(axes, (tuple, list)) else (axes,))]
    if len(set(found)) != len(found):
        raise AxisError(f"axes {axes} name one axis twice")
    return tuple(sorted(found))


def order_of(order: Any, ndim: int) -> Ints:
    """A permutation of all axes."""
    found = tuple([axis_of(axis, ndim) for axis in order])
    if sorted(found) != list(range(ndim)):
        raise AxisError(f"{tuple(order)} is no order of {ndim} axes")
    return found


def infer_shape(shape: Any, count: int) -> Ints:
    """A shape for `count` elements, in which one size may be -1."""
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


def index_window(window: Window, key: Any) -> Window:
    """The window of b[0], b[1:3, ::-1] or b[..., 2]: ints drop an axis, slices keep it."""
    keys = _one_key_per_axis(key if isinstance(key, tuple) else (key,), len(window.shape))
    shape: list[int] = []
    strides: list[int] = []
    offset = window.offset
    for axis, (one, size, stride) in enumerate(
        zip(keys, window.shape, window.strides, strict=True)
    ):
        if isinstance(one, slice):
            start, stop, step = _slice_bounds(one, size)
            count = len(range(start, stop, step))
            shape.append(count)
            strides.append(stride * step)
            offset += start * stride if count else 0
        else:
            offset += _int_index(one, axis, size) * stride
    return Window(tuple(shape), tuple(strides), offset)


def _one_key_per_axis(keys: tuple[Any, ...], ndim: int) -> list[Any]:
    """One index or slice per axis, with the Ellipsis expanded."""
    dots = [number for number, one in enumerate(keys) if one is Ellipsis]
    if len(dots) > 1:
        raise AxisError("only one '...' can be filled in")
    given = len(keys) - len(dots)
    if given > ndim:
        raise AxisError(f"{given} indices were given for {ndim} axes")
    at = dots[0] if dots else len(keys)
    rest = [slice(None)] * (ndim - given)
    return [*keys[:at], *rest, *keys[at + len(dots) :]]


def _slice_bounds(one: slice, size: int) -> tuple[int, int, int]:
    if one.step == 0:
        raise AxisError("the step of a slice cannot be 0")
    try:
        return one.indices(size)
    except TypeError:
        raise AxisError(f"a slice is made of whole numbers, not {one}") from None


def _int_index(index: Any, axis: int, size: int) -> int:
    if isinstance(index, bool) or not hasattr(index, "__index__"):
        raise AxisError(
            f"a {type(index).__name__} is no index", hint="use whole numbers, slices and '...'"
        )
    number = int(index.__index__())
    if not -size <= number < size:
        raise AxisError(f"index {number} is outside axis {axis} of size {size}")
    return number + size if number < 0 else number
