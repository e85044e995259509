"""Scans: running sums, products and extremes along an axis."""

from __future__ import annotations

import math
from typing import Self

from glassgrad.base.dtype import dtypes, sum_dtype
from glassgrad.ir.ops import Ops
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.keyword_aliases import keyword_aliases
from glassgrad.tensor.ops.reductions import accumulator
from glassgrad.tensor.record import BOOL, axis_of, record

SCAN, ADD, MUL, MAX, MIN = Ops.SCAN, Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN


class Scan(TensorCore):
    """cumsum, cumprod, cummax, cummin and logcumsumexp."""

    __slots__ = ()

    @keyword_aliases(dim="axis")
    def cumsum(self, axis: int = 0, *, dim: int = 0) -> Self:
        """Running sums along an axis.

        >>> Tensor([1, 2, 3]).cumsum().tolist()
        [1, 3, 6]
        """
        wanted = sum_dtype(self.uop.dtype)
        return self.cast(accumulator(wanted))._scan(ADD, axis).cast(wanted)

    @keyword_aliases(dim="axis")
    def cumprod(self, axis: int) -> Self:
        """Running products along an axis.

        >>> Tensor([1, 2, 3, 4]).cumprod(0).tolist()
        [1, 2, 6, 24]
        """
        wanted = sum_dtype(self.uop.dtype)
        return self.cast(accumulator(wanted))._scan(MUL, axis).cast(wanted)

    @keyword_aliases(dim="axis")
    def cummax(self, axis: int = 0, *, dim: int = 0) -> tuple[Self, Self]:
        """Running maxima along an axis, and the index of each, the last on ties.

        >>> [x.tolist() for x in Tensor([1, 3, 2, 3]).cummax()]
        [[1, 3, 3, 3], [0, 1, 1, 3]]
        """
        return self._running_extreme(MAX, axis)

    @keyword_aliases(dim="axis")
    def cummin(self, axis: int = 0, *, dim: int = 0) -> tuple[Self, Self]:
        """Running minima along an axis, and the index of each, the last on ties.

        >>> [x.tolist() for x in Tensor([3, 1, 2, 1]).cummin()]
        [[3, 1, 1, 1], [0, 1, 1, 3]]
        """
        return self._running_extreme(MIN, axis)

    @keyword_aliases(dim="axis")
    def logcumsumexp(self, axis: int = 0, *, dim: int = 0) -> Self:
        """log(cumsum(exp(x))) along an axis, without overflow.

        >>> [round(x, 3) for x in Tensor([1000.0, 1000.0]).logcumsumexp().tolist()]
        [1000.0, 1000.693]
        """

        def logarithms(x: Self) -> Self:
            if not x.ndim or 0 in x.uop.shape:
                return x
            # All terms are scaled by exp(-running maximum), which changes from step to step.
            largest = x.detach()._scan(MAX, axis)
            before = largest._shift_in_log_zero(axis_of(axis, x.ndim))
            most, last = [y.isfinite().where(y, 0.0) for y in (largest, before)]
            factor = before.eq(-math.inf).where(0.0, (last - most).exp())
            return (x - most).exp()._scan(Ops.MULACC, axis, factor).log() + most

        return self._apply_in_float(logarithms)

    def _shift_in_log_zero(self, axis: int) -> Self:
        """Elements shifted by one along an axis, after a first element log(0)."""
        pairs, box = [(0, 0)] * self.ndim, [(0, n) for n in self.shape]
        pairs[axis], box[axis] = (1, 0), (0, self.shape[axis] - 1)
        return self.shrink(tuple(box)).pad(tuple(pairs), value=-math.inf)

    def _running_extreme(self, op: Ops, axis: int) -> tuple[Self, Self]:
        dim = axis_of(axis, self.ndim)
        if not self.ndim or 0 in self.uop.shape:
            return self._wrap(self.uop), self.cast(dtypes.int32).zeros_like()
        plain = (self.cast(dtypes.uint8) if self.uop.dtype is BOOL else self).detach()
        best = plain._scan(op, axis)
        is_best = plain.eq(best) | plain.isnan()
        size = self.shape[dim]
        line = self._iota(size).reshape((size, *(1,) * (self.ndim - 1 - dim)))
        index = is_best.where(line, 0)._scan(MAX, axis)
        # Gathered again, so that the gradient goes to the element with that value.
        values = (
            self._gather_unchecked(dim, index)
            if self.is_floating_point()
            else best.cast(self.dtype)
        )
        return values, index

    def _scan(self, op: Ops, axis: int, factor: Self | None = None) -> Self:
        """A reduction op applied to all elements up to each one.

        With MULACC the running value is multiplied by `factor` before each element is added.
        """
        dim = axis_of(axis, self.ndim)
        if not self.ndim or 0 in self.uop.shape or self.uop.shape[dim] == 1:
            return self._wrap(self.uop)
        sources = (self.uop,) if factor is None else (self.uop, factor.uop)
        return self._wrap(record(SCAN, self.uop.dtype, sources, (op, dim)))
