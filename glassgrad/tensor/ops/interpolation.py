"""Interpolation: resize the last axes from neighbouring elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import ShapeError
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.record import sizes_of
from glassgrad.tensor.symbolic_sizes import with_concrete_arguments

MODES = ("linear", "cubic", "nearest", "nearest-exact")
CUBIC_A = -0.75  # the parameter a of cubic convolution, as in PyTorch


class Interpolation(TensorCore):
    """interpolate."""

    __slots__ = ()

    @with_concrete_arguments
    def interpolate(
        self, size: tuple[int, ...], mode: str = "linear", align_corners: bool = False
    ) -> Self:
        """The last axes resized: "linear" or "cubic" interpolation between neighbours, or
        "nearest".

        With `align_corners` the first and last elements keep their positions.

        >>> Tensor([[[1.0, 3.0]]]).interpolate((4,)).tolist()
        [[[1.0, 1.5, 2.5, 3.0]]]
        """
        if mode not in MODES:
            raise ValueError(f"mode is one of {', '.join(MODES)}, not {mode!r}")
        if align_corners and mode not in WEIGHTS:
            raise ValueError(f'align_corners goes with "linear" and "cubic", not {mode!r}')
        sizes = sizes_of((size,), "size")
        if not 0 < len(sizes) <= self.ndim or any(n < 1 for n in sizes) or 0 in self.uop.shape:
            raise ShapeError(
                f"cannot interpolate {self.shape} to {sizes}",
                hint="one size of at least 1 for each of the last axes",
            )
        x = self.cast(_computed_in(self.dtype)) if mode in WEIGHTS else self
        for back, wanted in enumerate(reversed(sizes), start=1):
            axis = self.ndim - back
            if back > 1 and wanted != self.shape[axis]:
                # Storing interpolated rows lets the next axis read vectors instead of elements.
                x = x.contiguous()
            if mode in WEIGHTS:
                x = _between(x, axis, wanted, align_corners, WEIGHTS[mode])
            else:
                x = _at(x, axis, _nearest(x, axis, wanted, is_centred=mode == "nearest-exact"))
        return (x if self.is_floating_point() else x.round()).cast(self.dtype)


def _computed_in(dtype: DType) -> DType:
    """The dtype that all axes are interpolated in, so that results are rounded once."""
    if dtype.kind == "float":
        return dtype if dtype.bits >= 32 else dtypes.float32
    return dtypes.float32 if dtype.bits <= 16 else dtypes.float64


def _at(x: Any, axis: int, index: Any) -> Any:
    """x at valid indices along an axis."""
    shape = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
    return x._gather_unchecked(axis, index.reshape((-1, *(1,) * (x.ndim - 1 - axis))).expand(shape))


def _line(x: Any, wanted: int, size: int) -> Any:
    """0, 1, … in the narrowest ints that hold twice their product with the size."""
    is_small = (2 * wanted + 1) * size < 2**31
    return x._iota(wanted, dtypes.int32 if is_small else dtypes.int64)


def _nearest(x: Any, axis: int, wanted: int, is_centred: bool) -> Any:
    """floor((i + shift) * size / wanted) in integers."""
    size = int(x.shape[axis])
    line = _line(x, wanted, size)
    index = (line * 2 + 1) * size // (2 * wanted) if is_centred else line * size // wanted
    return index.cast(dtypes.int32)


def _between(x: Any, axis: int, wanted: int, align_corners: bool, weights: Weights) -> Any:
    """A weighted sum of a few neighbours."""
    size = int(x.shape[axis])
    if size == wanted:
        return x
    # Positions are exact fractions top / bottom, so that the neighbours are exact, too.
    line = _line(x, wanted, size)
    if align_corners:
        top, bottom = line * (size - 1), max(wanted - 1, 1)
    else:
        top, bottom = (line * 2 + 1) * size - wanted, 2 * wanted
    low = top // bottom
    part = (top - low * bottom).cast(x.dtype) / float(bottom)
    part = part.reshape((wanted, *(1,) * (x.ndim - 1 - axis)))
    first, *others = [
        _at(x, axis, (low + step).clamp(0, size - 1).cast(dtypes.int32)) * weight
        for step, weight in weights(part).items()
    ]
    return first.usum(*others)


def _linear(part: Any) -> dict[int, Any]:
    """The weight of each neighbour at `part` of the way from neighbour 0 to neighbour 1."""
    return {0: 1.0 - part, 1: part}


def _cubic(part: Any) -> dict[int, Any]:
    """The weights of a cubic through both neighbours, with derivatives there from theirs."""
    return {
        -1: _outer(part + 1.0),
        0: _inner(part),
        1: _inner(1.0 - part),
        2: _outer(2.0 - part),
    }


def _inner(x: Any) -> Any:
    """The weight of neighbours at most 1 away."""
    return ((CUBIC_A + 2) * x - (CUBIC_A + 3)) * x * x + 1.0


def _outer(x: Any) -> Any:
    """The weight of neighbours 1 to 2 away."""
    return ((x - 5.0) * x + 8.0) * x * CUBIC_A - 4 * CUBIC_A


Weights = Callable[[Any], dict[int, Any]]
WEIGHTS: dict[str, Weights] = {"linear": _linear, "cubic": _cubic}
