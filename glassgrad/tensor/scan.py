"""Scans: running sums, products and extremes along an axis.

Work is linear: blocks of 8 are scanned by sliding windows, the totals of the blocks are scanned
in the same way, and every block adds what came before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Self, TypeVar

from glassgrad.base.dtype import ConstType, dtypes, sum_dtype
from glassgrad.ir.ops import Ops
from glassgrad.tensor.arrangement import Arrangement
from glassgrad.tensor.record import BOOL, axis_of
from glassgrad.tensor.reduce import accumulator

ADD, MUL, MAX, MIN = Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN
BLOCK = 8
T = TypeVar("T", bound=Arrangement)


class Scan(Arrangement):
    """cumsum, cumprod, cummax, cummin and logcumsumexp."""

    __slots__ = ()

    def cumsum(self, axis: int = 0) -> Self:
        """Running sums along an axis.

        >>> Tensor([1, 2, 3]).cumsum().tolist()
        [1, 3, 6]
        """
        wanted = sum_dtype(self.uop.dtype)
        return self.cast(accumulator(wanted))._scanned(ADD, axis, 0).cast(wanted)

    def cumprod(self, axis: int) -> Self:
        """Running products along an axis.

        >>> Tensor([1, 2, 3, 4]).cumprod(0).tolist()
        [1, 2, 6, 24]
        """
        wanted = sum_dtype(self.uop.dtype)
        return self.cast(accumulator(wanted))._scanned(MUL, axis, 1).cast(wanted)

    def cummax(self, axis: int = 0) -> tuple[Self, Self]:
        """The largest so far along an axis, and where it was last.

        >>> [x.tolist() for x in Tensor([1, 3, 2, 3]).cummax()]
        [[1, 3, 3, 3], [0, 1, 1, 3]]
        """
        return self._extremes(MAX, axis)

    def cummin(self, axis: int = 0) -> tuple[Self, Self]:
        """The smallest so far along an axis, and where it was last.

        >>> [x.tolist() for x in Tensor([3, 1, 2, 1]).cummin()]
        [[3, 1, 1, 1], [0, 1, 1, 3]]
        """
        return self._extremes(MIN, axis)

    def logcumsumexp(self, axis: int = 0) -> Self:
        """log(cumsum(exp(x))) along an axis, without overflow.

        >>> [round(x, 3) for x in Tensor([1000.0, 1000.0]).logcumsumexp().tolist()]
        [1000.0, 1000.693]
        """
        x = self if self.is_floating_point() else self.cast(dtypes.default_float)
        place = axis_of(axis, self.ndim)
        if not self.ndim or 0 in self.shape:
            return x
        return scanned(x, place, lambda w: w.logsumexp(-1), type(x).logaddexp, -math.inf)

    def _extremes(self, op: Ops, axis: int) -> tuple[Self, Self]:
        place = axis_of(axis, self.ndim)
        if not self.ndim or 0 in self.shape:
            return self._made(self.uop), self.cast(dtypes.int32).zeros_like()
        plain = (self.cast(dtypes.uint8) if self.uop.dtype is BOOL else self).detach()
        start = dtypes.min(plain.dtype) if op is MAX else dtypes.max(plain.dtype)
        best = plain._scanned(op, axis, start)
        is_best = plain.eq(best) | plain.isnan()
        size = int(self.shape[place])
        line = self._line(size).reshape((size, *(1,) * (self.ndim - 1 - place)))
        index = is_best.where(line, 0)._scanned(MAX, axis, 0)
        # Looked up again, so that the gradient goes to where the value was.
        values = self._at(place, index) if self.is_floating_point() else best.cast(self.dtype)
        return values, index

    def _scanned(self, op: Ops, axis: int, start: ConstType) -> Self:
        """An op of reductions applied to all elements up to each one."""
        place = axis_of(axis, self.ndim)
        if not self.ndim or 0 in self.shape:
            return self._made(self.uop)
        return scanned(
            self,
            place,
            lambda window: window._reduced(op, (window.ndim - 1,), keepdim=False),
            lambda before, inner: before._binary(op, inner, "combine"),
            start,
        )


def scanned(
    x: T, axis: int, reduced: Callable[[T], T], combine: Callable[[T, T], T], start: ConstType
) -> T:
    """Running values along an axis; `start` changes nothing when it is combined."""
    size = int(x.shape[axis])
    if size <= 2 * BLOCK:
        return _short(x, axis, reduced, start)
    count = -(-size // BLOCK)
    blocks = _widened(x, axis, 0, count * BLOCK - size, start).unflatten(axis, (count, BLOCK))
    inner = _short(blocks, axis + 1, reduced, start)
    totals = _cut(inner, axis + 1, BLOCK - 1, BLOCK).squeeze(axis + 1)
    before = _widened(scanned(totals, axis, reduced, combine, start), axis, 1, -1, start)
    whole = combine(before.unsqueeze(axis + 1), inner)
    return _cut(whole.flatten(axis, axis + 1), axis, 0, size)


def _short(x: T, axis: int, reduced: Callable[[T], T], start: ConstType) -> T:
    """Each element reduced with all before it: windows that reach back over the beginning."""
    size = int(x.shape[axis])
    return reduced(_widened(x, axis, size - 1, 0, start)._window(axis, size))


def _widened(x: T, axis: int, before: int, after: int, value: ConstType) -> T:
    pairs = [(0, 0)] * x.ndim
    pairs[axis] = (before, after)
    return x.pad(tuple(pairs), value=value)


def _cut(x: T, axis: int, start: int, stop: int) -> T:
    pairs: list[tuple[int, int] | None] = [None] * x.ndim
    pairs[axis] = (start, stop)
    return x.shrink(pairs)
