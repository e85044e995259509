"""Softmax and normalizations: layernorm, batchnorm and division by norms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

from glassgrad.base.dtype import DTypeLike
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.tensor.autograd.gradient import Derivative
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.keyword_aliases import keyword_aliases
from glassgrad.tensor.lazy.composite import composite
from glassgrad.tensor.ops.functions import with_derivative
from glassgrad.tensor.record import as_float, axes_of, axis_of


def _sum_along(x: UOp, axis: int) -> UOp:
    """The sum, with the axis kept as size 1."""
    dim = axis_of(axis, len(x.shape))
    if not x.shape:
        return x
    total = UOp(Ops.REDUCE, x.dtype, (x,), (Ops.ADD, (dim,)))
    return UOp(Ops.RESHAPE, x.dtype, (total,), (*x.shape[:dim], 1, *x.shape[dim + 1 :]))


def _softmax_derivative(y: UOp, g: UOp, axis: int) -> UOp:
    """The gradient of softmax, from its result alone."""
    return y * (g - _sum_along(g * y, axis))


def _log_softmax_derivative(y: UOp, g: UOp, axis: int) -> UOp:
    shares = (y * math.log2(math.e)).alu(Ops.EXP2)
    return g - shares * _sum_along(g, axis)


def _is_empty(shape: tuple[int, ...], axis: int) -> bool:
    """True if an axis has no elements, and so no maximum."""
    return bool(shape) and not shape[axis_of(axis, len(shape))]


class Normalization(TensorCore):
    """softmax, log_softmax, layernorm, batchnorm and normalize."""

    __slots__ = ()

    def _as_floats(self, dtype: DTypeLike | None = None) -> Self:
        return self._wrap(as_float(self.uop)) if dtype is None else self.cast(dtype)

    @keyword_aliases(dim="axis")
    @composite
    def softmax(self, axis: int = -1, dtype: DTypeLike | None = None, *, dim: int = -1) -> Self:
        """exp(x) / sum(exp(x)) along an axis, without overflow.

        >>> Tensor([[1.0, 2.0]]).softmax().shape
        (1, 2)
        """

        def normalized(x: Self) -> Self:
            if _is_empty(x.uop.shape, axis):
                return x
            powers = (x - x._reduce(Ops.MAX, axes_of(axis, x.ndim), keepdim=True).detach()).exp()
            shares = powers / powers.sum(axis, keepdim=True)
            return with_derivative(shares, x, Derivative(_softmax_derivative, (axis,)))

        return self._as_floats(dtype)._apply_in_float(normalized)

    @keyword_aliases(dim="axis")
    def softmin(self, axis: int = -1, dtype: DTypeLike | None = None, *, dim: int = -1) -> Self:
        """softmax(-x)

        >>> Tensor([1.0, 1.0]).softmin().tolist()
        [0.5, 0.5]
        """
        return (-self).softmax(axis, dtype)

    @keyword_aliases(dim="axis")
    @composite
    def log_softmax(self, axis: int = -1, dtype: DTypeLike | None = None, *, dim: int = -1) -> Self:
        """log(softmax(x)), without overflow or log(0).

        >>> Tensor([0.0, -1e9]).log_softmax().tolist()
        [0.0, -1000000000.0]
        """

        def logarithms(x: Self) -> Self:
            if _is_empty(x.uop.shape, axis):
                return x
            shifted = x - x._reduce(Ops.MAX, axes_of(axis, x.ndim), keepdim=True).detach()
            y = shifted - shifted.exp().sum(axis, keepdim=True).log()
            return with_derivative(y, x, Derivative(_log_softmax_derivative, (axis,)))

        return self._as_floats(dtype)._apply_in_float(logarithms)

    @composite
    def layernorm(self, axis: Any = -1, eps: float = 1e-5) -> Self:
        """Normalized to mean 0 and variance 1 along some axes.

        >>> Tensor([-4.0, 4.0]).layernorm(eps=0).tolist()
        [-1.0, 1.0]
        """

        def standard(x: Self) -> Self:
            centred = x - x.mean(axis, keepdim=True)
            return centred * ((centred * centred).mean(axis, keepdim=True) + eps).rsqrt()

        return self._apply_in_float(standard)

    def normalize(self, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Self:
        """Divided by the p-norm along an axis.

        >>> Tensor([[3.0, 4.0]]).normalize().tolist()
        [[0.6000000238418579, 0.800000011920929]]
        """
        return self._apply_in_float(lambda x: x / x._p_norm(p, dim).maximum(eps))

    def _p_norm(self, p: float, axis: Any, keepdim: bool = True) -> Self:
        """The p-norm along axes; its derivative is 0 where it is 0."""
        size = self.abs()
        if p == math.inf:
            return size.max(axis, keepdim)
        if p == -math.inf:
            return size.min(axis, keepdim)
        if p == 0:
            return self.ne(0).cast(self.dtype).sum(axis, keepdim=keepdim)
        if p == 1:
            return size.sum(axis, keepdim=keepdim)
        if p == 2:
            return self.square().sum(axis, keepdim=keepdim)._unless_zero(lambda x: x.sqrt())
        powers = size._unless_zero(lambda x: x.pow(p)) if p > 0 else size.pow(p)
        return powers.sum(axis, keepdim=keepdim)._unless_zero(lambda x: x.pow(1 / p))

    def _unless_zero(self, function: Callable[[Self], Self]) -> Self:
        """A function of nonzero values; 0 stays 0, with derivative 0."""
        is_zero = self.eq(0)
        value = function(is_zero.where(self.const_like(1), self))
        return is_zero.where(self.const_like(0), value)

    @composite
    def batchnorm(
        self,
        weight: Self | None,
        bias: Self | None,
        mean: Self,
        invstd: Self,
        axis: int | tuple[int, ...] = 1,
    ) -> Self:
        """(x - mean) * invstd * weight + bias, all of them vectors along `axis`.

        >>> x, two = Tensor([[1.0, 2.0]]), Tensor([2.0, 2.0])
        >>> x.batchnorm(two, two, mean=two, invstd=two).tolist()
        [[-2.0, 2.0]]
        """
        mean, invstd = self._as_tensor(mean, "the mean"), self._as_tensor(invstd, "invstd")
        axes = axes_of(axis, self.ndim)
        shape = tuple(size if one in axes else 1 for one, size in enumerate(self.shape))
        scale = invstd.reshape(shape) if len(axes) == invstd.ndim else invstd

        def standard(x: Self) -> Self:
            x = (x - mean.reshape(shape)) * scale
            x = x if weight is None else x * weight.reshape(shape)
            return x if bias is None else x + bias.reshape(shape)

        given = [one for one in (mean, invstd, weight, bias) if one is not None]
        if all(one.uop.dtype is self.uop.dtype for one in given):
            return self._apply_in_float(standard)
        return standard(self)
