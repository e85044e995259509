"""floats x, y -> what is left of x, and how often y goes into it: no rounded quotient is believed.

1.0 / 0.1 is rounded to 10 though 0.1 goes 9 times into 1: a remainder that lies outside of its
range says so, and is put right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from glassgrad.base.dtype import dtypes

if TYPE_CHECKING:
    from glassgrad.tensor.elementwise import Elementwise

T = TypeVar("T", bound="Elementwise")


def towards_zero(x: T, y: T) -> T:
    """x - trunc(x / y) · y: the sign of x, and smaller than y; x itself where y is infinite."""
    return _rest(x, y).cast(x.dtype)


def downwards(x: T, y: T) -> T:
    """x - floor(x / y) · y: the sign of y, as Python has it."""
    rest = _rest(x, y)
    return _differs(rest, y).where(rest + y.cast(rest.dtype), rest).cast(x.dtype)


def floor_quotient(x: T, y: T) -> T:
    """How often y goes into x, rounded down; where y is 0, what x / y is."""
    rest = _rest(x, y)
    times = ((x.cast(rest.dtype) - rest) / y.cast(rest.dtype)).round()
    whole = _differs(rest, y).where(times - 1, times)
    return y.eq(0).where((x / y).trunc(), whole.cast(x.dtype))


def _rest(x: T, y: T) -> T:
    """The remainder towards zero, in float64: the quotient is off by one at most.

    Its product with y must be exact, or that goes unseen. A float32 leaves room for it; of a
    float64 the upper and the lower half are multiplied apart.
    """
    is_long = y.dtype is dtypes.float64
    x, y = x.cast(dtypes.float64), y.cast(dtypes.float64)
    times = (x / y).trunc()
    upper = y.cast(dtypes.float32).cast(dtypes.float64) if is_long else y
    if is_long:
        upper = upper.isinf().where(y, upper)
    rest = x - times * upper
    rest = rest - times * (y - upper) if is_long else rest
    rest = times.eq(0).where(x, rest)  # where y is infinite, too
    size = (x < 0).where(-y.abs(), y.abs())  # y with the sign of x
    rest = _differs(rest, x).where(rest + size, rest)
    rest = (rest.abs() >= size.abs()).where(rest - size, rest)
    return (rest.abs() < size.abs()).where(rest, rest * 0)  # a quotient beyond all digits


def _differs(rest: T, other: T) -> T:
    """Is there a rest, of another sign?"""
    return rest.ne(0) & ((rest < 0) ^ (other < 0))
