"""Reductions over axes: sum, prod, max, mean, var, logsumexp, argmax and others."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Self

from glassgrad.base.dtype import DType, DTypeLike, dtypes, sum_dtype
from glassgrad.base.errors import ShapeError
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Sizes
from glassgrad.ir.uop import UOp
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.keyword_aliases import keyword_aliases, refused_keywords
from glassgrad.tensor.record import (
    BOOL,
    axes_of,
    axis_of,
    cast_to,
    dtype_of,
    record,
    reshaped,
    scalar,
    whole_number,
)
from glassgrad.tensor.symbolic_sizes import checked_slice

REDUCE, ADD, MUL, MAX, MIN = Ops.REDUCE, Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN
Axes = int | Sequence[int] | None
# Elements; above this the rounding error of the mean is corrected in the variance.
MIN_CORRECTED_COUNT = 4096
PAIR = "PyTorch returns values and indices for it; here max(axis=…) and argmax(axis=…) do"


def accumulator(dtype: DType) -> DType:
    """The dtype to accumulate in: at least float32, and wide enough for integer sums."""
    return dtypes.float32 if dtype.kind == "float" and dtype.bits < 32 else sum_dtype(dtype)


def reduce_node(uop: UOp, op: Ops, axes: tuple[int, ...]) -> UOp:
    """REDUCE, or a reshape if all reduced axes have size 1."""
    shape = uop.shape
    if all(shape[axis] == 1 for axis in axes):
        rest = tuple([size for axis, size in enumerate(shape) if axis not in axes])
        return reshaped(uop, rest)
    return record(REDUCE, uop.dtype, (uop,), (op, axes))


def reduce_axes(uop: UOp, op: Ops, axes: tuple[int, ...], keepdim: bool) -> UOp:
    """A reduction whose axes are removed, or kept as size 1."""
    result = reduce_node(uop, op, axes)
    if not keepdim:
        return result
    return reshaped(result, tuple([1 if i in axes else n for i, n in enumerate(uop.shape)]))


class Reductions(TensorCore):
    """sum, prod, max, min, any, all, mean, var, std, logsumexp, argmax and argmin."""

    __slots__ = ()

    def _reduce(self, op: Ops, axes: tuple[int, ...], keepdim: bool) -> Self:
        return self._wrap(reduce_axes(self.uop, op, axes, keepdim))

    @keyword_aliases(dim="axis")
    def sum(
        self,
        axis: Axes = None,
        keepdim: bool = False,
        dtype: DTypeLike | None = None,
        acc_dtype: DTypeLike | None = None,
        *,
        dim: Axes = None,
    ) -> Self:
        """The sum over some axes, or over all. Small ints widen, so that sums do not wrap.

        `acc_dtype` is an older name of `dtype`, here and in other methods.

        >>> Tensor([[1, 2], [3, 4]]).sum(axis=0).shape
        (2,)
        """
        return self._accumulate(ADD, axis, keepdim, acc_dtype if dtype is None else dtype)

    @keyword_aliases(dim="axis")
    def prod(
        self,
        axis: Axes = None,
        keepdim: bool = False,
        dtype: DTypeLike | None = None,
        acc_dtype: DTypeLike | None = None,
        *,
        dim: Axes = None,
    ) -> Self:
        """The product over some axes, or over all.

        >>> Tensor([[1, 2], [3, 4]]).prod(axis=1).tolist()
        [2, 12]
        """
        return self._accumulate(MUL, axis, keepdim, acc_dtype if dtype is None else dtype)

    def _accumulate(self, op: Ops, axis: Axes, keepdim: bool, dtype: DTypeLike | None) -> Self:
        axes = axes_of(axis, self.ndim)
        wanted = sum_dtype(self.uop.dtype) if dtype is None else dtype_of(dtype)
        wide = reduce_axes(cast_to(self.uop, accumulator(wanted)), op, axes, keepdim)
        return self._wrap(cast_to(wide, wanted))

    @refused_keywords(dim=PAIR)
    def max(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """The maximum over some axes, or over all.

        >>> Tensor([[1, 2], [3, 4]]).max(axis=0).tolist()
        [3, 4]
        """
        return self._extreme(MAX, axis, keepdim, "maximum")

    @refused_keywords(dim=PAIR.replace("max", "min"))
    def min(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """The minimum over some axes, or over all.

        >>> Tensor([[1, 2], [3, 4]]).min().item()
        1
        """
        return self._extreme(MIN, axis, keepdim, "minimum")

    def _extreme(self, op: Ops, axis: Axes, keepdim: bool, word: str) -> Self:
        axes = axes_of(axis, self.ndim)
        if 0 in self.uop.shape and any(self.uop.shape[one] == 0 for one in axes):
            raise ShapeError(f"there is no {word} of no elements: the shape is {self.shape}")
        if Sizes.exist:
            for one in axes:  # an empty axis has no maximum
                if self.ndim:
                    checked_slice(0, 1, self.shape[one], one)
        if self.uop.dtype is BOOL:
            return self.cast(dtypes.uint8)._reduce(op, axes, keepdim).cast(BOOL)
        return self._reduce(op, axes, keepdim)

    @keyword_aliases(dim="axis")
    def any(self, axis: Axes = None, keepdim: bool = False, *, dim: Axes = None) -> Self:
        """True if some value is true.

        >>> Tensor([False, True]).any().item()
        True
        """
        truth = self.cast(BOOL).cast(dtypes.uint8)
        return truth._reduce(MAX, axes_of(axis, self.ndim), keepdim).cast(BOOL)

    @keyword_aliases(dim="axis")
    def all(self, axis: Axes = None, keepdim: bool = False, *, dim: Axes = None) -> Self:
        """True if every value is true.

        >>> Tensor([False, True]).all().item()
        False
        """
        truth = self.cast(BOOL).cast(dtypes.uint8)
        return truth._reduce(MIN, axes_of(axis, self.ndim), keepdim).cast(BOOL)

    def allclose(
        self, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
    ) -> Self:
        """True if `isclose` holds everywhere.

        >>> Tensor([1.0, 2.0]).allclose(Tensor([1.0, 2.0000001])).item()
        True
        """
        return self.isclose(other, rtol, atol, equal_nan).all()

    @keyword_aliases(dim="axis")
    def mean(self, axis: Axes = None, keepdim: bool = False, *, dim: Axes = None) -> Self:
        """The average; ints give floats.

        >>> Tensor([1, 2, 4]).mean(keepdim=True).shape, Tensor([1, 2]).mean().item()
        ((1,), 1.5)
        """
        dtype = self.uop.dtype if self.uop.dtype.kind == "float" else dtypes.default_float
        axes = axes_of(axis, self.ndim)
        total = reduce_axes(cast_to(self.uop, accumulator(dtype)), ADD, axes, keepdim)
        count = scalar(prod(self.shape[one] for one in axes), total.dtype)
        return self._wrap(cast_to(record(Ops.FDIV, total.dtype, (total, count)), dtype))

    @keyword_aliases(dim="axis")
    def var(
        self, axis: Axes = None, keepdim: bool = False, correction: int = 1, *, dim: Axes = None
    ) -> Self:
        """The mean squared distance from the mean, over n - correction.

        >>> Tensor([1.0, 3.0]).var().item(), Tensor([1.0, 3.0]).var(correction=0).item()
        (2.0, 1.0)
        """
        return self.var_mean(axis, keepdim, correction)[0]

    @keyword_aliases(dim="axis")
    def var_mean(
        self, axis: Axes = None, keepdim: bool = False, correction: int = 1, *, dim: Axes = None
    ) -> tuple[Self, Self]:
        """`var` and `mean`, sharing work.

        >>> [x.item() for x in Tensor([1.0, 3.0]).var_mean()]
        [2.0, 2.0]
        """
        dtype = self.uop.dtype if self.uop.dtype.kind == "float" else dtypes.default_float
        variance, mean = self._var_mean(axis, keepdim, correction)
        return variance.cast(dtype), mean.cast(dtype)

    def _var_mean(self, axis: Axes, keepdim: bool, correction: int) -> tuple[Self, Self]:
        """Variance and mean in the accumulator's dtype, in two passes.

        The mean of many values has a rounding error. The sum of distances, exactly 0 otherwise,
        measures it, and its contribution to the squares is subtracted.
        """
        correction = whole_number(correction, "the correction")
        dtype = self.uop.dtype if self.uop.dtype.kind == "float" else dtypes.default_float
        axes = axes_of(axis, self.ndim)
        wide = self.cast(accumulator(dtype))
        mean = wide.mean(axes, keepdim=True)
        count = prod(self.shape[one] for one in axes)
        distance = wide - mean
        total = (distance * distance)._reduce(ADD, axes, keepdim)
        kept = mean if keepdim else mean._wrap(reshaped(mean.uop, total.shape))
        if (
            count >= MIN_CORRECTED_COUNT
            if isinstance(count, int)
            else count.vmax >= MIN_CORRECTED_COUNT
        ):
            off = distance.detach()._reduce(ADD, axes, keepdim) / count
            total, kept = total - off * off * count, kept + off
        if isinstance(count, int):
            return total / max(0, count - correction), kept
        return total / self._wrap(scalar(count - correction, total.dtype)).maximum(0), kept

    @keyword_aliases(dim="axis")
    def std(
        self, axis: Axes = None, keepdim: bool = False, correction: int = 1, *, dim: Axes = None
    ) -> Self:
        """The square root of `var`.

        >>> Tensor([1.0, 5.0]).std(correction=0).item()
        2.0
        """
        return self.std_mean(axis, keepdim, correction)[0]

    @keyword_aliases(dim="axis")
    def std_mean(
        self, axis: Axes = None, keepdim: bool = False, correction: int = 1, *, dim: Axes = None
    ) -> tuple[Self, Self]:
        """`std` and `mean`, sharing work.

        >>> [x.item() for x in Tensor([1.0, 5.0]).std_mean(correction=0)]
        [2.0, 3.0]
        """
        dtype = self.uop.dtype if self.uop.dtype.kind == "float" else dtypes.default_float
        variance, mean = self._var_mean(axis, keepdim, correction)
        return variance.sqrt().cast(dtype), mean.cast(dtype)

    @keyword_aliases(dim="axis")
    def logsumexp(self, axis: Axes = None, keepdim: bool = False, *, dim: Axes = None) -> Self:
        """log(sum(exp(self))), without overflow.

        >>> round(Tensor([1000.0, 1000.0]).logsumexp().item(), 3)
        1000.693
        """
        axes = axes_of(axis, self.ndim)

        def logarithm(x: Self) -> Self:
            if 0 in [x.uop.shape[axis] for axis in axes]:
                return x.exp().sum(axes, keepdim=keepdim).log()
            top = x.max(axes, keepdim=True).detach()
            top = top.isinf().where(0.0, top)
            total = (x - top).exp().sum(axes, keepdim=True).log() + top
            return total if keepdim else x._wrap(reshaped(total.uop, x._left(axes)))

        return self._apply_in_float(logarithm)

    def _left(self, axes: tuple[int, ...]) -> tuple[int, ...]:
        return tuple([size for axis, size in enumerate(self.uop.shape) if axis not in axes])

    @keyword_aliases(dim="axis")
    def argmax(
        self, axis: int | None = None, keepdim: bool = False, *, dim: int | None = None
    ) -> Self:
        """The index of the largest value, the first if there are several; nan counts as largest.

        >>> Tensor([[1, 3, 2]]).argmax(axis=1).dtype
        dtypes.int
        """
        return self._arg_extreme(MAX, axis, keepdim)

    @keyword_aliases(dim="axis")
    def argmin(
        self, axis: int | None = None, keepdim: bool = False, *, dim: int | None = None
    ) -> Self:
        """The index of the smallest value, the first if there are several.

        >>> Tensor([3, 1, 1]).argmin().item()
        1
        """
        return self._arg_extreme(MIN, axis, keepdim)

    def _arg_extreme(self, op: Ops, axis: int | None, keepdim: bool) -> Self:
        if axis is None:
            flat = self.reshape(self.numel())._arg_extreme(op, 0, keepdim=False)
            return flat.reshape((1,) * self.ndim) if keepdim else flat
        if self.ndim == 0:
            axis_of(axis, 0)
            return self.const_like(0).cast(dtypes.int32)
        dim = axis_of(axis, self.ndim)
        best = self._extreme(op, dim, keepdim=True, word="index of an extreme")
        size: int = self.shape[dim]
        counted = dtypes.int32 if size < 1 << 31 else dtypes.int64
        line = self._wrap(record(Ops.IOTA, counted, (), size))
        line = line.reshape((size, *(1,) * (self.ndim - 1 - dim)))
        is_best = self.eq(best) | self.ne(self) if self.is_floating_point() else self.eq(best)
        # Counting down makes the first index the largest value.
        first = is_best.where(size - line, 0)._reduce(MAX, (dim,), keepdim)
        return size - first
