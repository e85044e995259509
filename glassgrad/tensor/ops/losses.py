"""Losses and normalizations: softmax, layernorm, batchnorm, cross-entropy and others."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self, TypeVar

from glassgrad.base.dtype import DTypeLike
from glassgrad.base.errors import DTypeError, ShapeError
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.tensor.autograd.gradient import Derivative
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.keyword_aliases import keyword_aliases
from glassgrad.tensor.lazy.composite import composite
from glassgrad.tensor.ops.functions import with_derivative
from glassgrad.tensor.ops.indexing import check_range
from glassgrad.tensor.record import as_float, axes_of, axis_of

REDUCTIONS = ("mean", "sum", "none")
# The smallest divisor in the derivative of a logarithm: at 0 it would be infinite.
MIN_LOG_ARGUMENT = 1e-12


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


def _log_derivative(y: UOp, g: UOp) -> UOp:
    return g.alu(Ops.FDIV, y.src[1].maximum(MIN_LOG_ARGUMENT))


def _is_empty(shape: tuple[int, ...], axis: int) -> bool:
    """True if an axis has no elements, and so no maximum."""
    return bool(shape) and not shape[axis_of(axis, len(shape))]


L = TypeVar("L", bound=TensorCore)


class Losses(TensorCore):
    """softmax, normalizations and loss functions."""

    __slots__ = ()

    # ------------------------------------------------------------------ normalisations

    def _floats(self, dtype: DTypeLike | None = None) -> Self:
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
            powers = (x - x._reduced(Ops.MAX, axes_of(axis, x.ndim), keepdim=True).detach()).exp()
            shares = powers / powers.sum(axis, keepdim=True)
            return with_derivative(shares, x, Derivative(_softmax_derivative, (axis,)))

        return self._floats(dtype)._smooth(normalized)

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
            shifted = x - x._reduced(Ops.MAX, axes_of(axis, x.ndim), keepdim=True).detach()
            y = shifted - shifted.exp().sum(axis, keepdim=True).log()
            return with_derivative(y, x, Derivative(_log_softmax_derivative, (axis,)))

        return self._floats(dtype)._smooth(logarithms)

    @composite
    def layernorm(self, axis: Any = -1, eps: float = 1e-5) -> Self:
        """Normalized to mean 0 and variance 1 along some axes.

        >>> Tensor([-4.0, 4.0]).layernorm(eps=0).tolist()
        [-1.0, 1.0]
        """

        def standard(x: Self) -> Self:
            centred = x - x.mean(axis, keepdim=True)
            return centred * ((centred * centred).mean(axis, keepdim=True) + eps).rsqrt()

        return self._smooth(standard)

    def normalize(self, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Self:
        """Divided by the p-norm along an axis.

        >>> Tensor([[3.0, 4.0]]).normalize().tolist()
        [[0.6000000238418579, 0.800000011920929]]
        """
        return self._smooth(lambda x: x / x._length(p, dim).maximum(eps))

    def _length(self, p: float, axis: Any, keepdim: bool = True) -> Self:
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
        mean, invstd = self._given(mean, "the mean"), self._given(invstd, "invstd")
        axes = axes_of(axis, self.ndim)
        shape = tuple(size if one in axes else 1 for one, size in enumerate(self.shape))
        scale = invstd.reshape(shape) if len(axes) == invstd.ndim else invstd

        def standard(x: Self) -> Self:
            x = (x - mean.reshape(shape)) * scale
            x = x if weight is None else x * weight.reshape(shape)
            return x if bias is None else x + bias.reshape(shape)

        given = [one for one in (mean, invstd, weight, bias) if one is not None]
        if all(one.uop.dtype is self.uop.dtype for one in given):
            return self._smooth(standard)
        return standard(self)

    # ------------------------------------------------------------------ losses

    def _collected(self, reduction: str) -> Self:
        if reduction not in REDUCTIONS:
            raise ValueError(f"reduction is one of {', '.join(REDUCTIONS)}, not {reduction!r}")
        return self.mean() if reduction == "mean" else self.sum() if reduction == "sum" else self

    @composite
    def binary_crossentropy(self, Y: Self, reduction: str = "mean") -> Self:  # noqa: N803
        """-Y log(x) - (1-Y) log(1-x), for probabilities x.

        >>> round(Tensor([0.5, 0.5]).binary_crossentropy(Tensor([0.0, 1.0])).item(), 5)
        0.69315
        """
        wanted = self._given(Y, "the target")
        yes, no = self._bounded_log(), (1 - self)._bounded_log()
        return (-(wanted * yes) - (1 - wanted) * no)._collected(reduction)

    def _bounded_log(self) -> Self:
        """log(x), at least -100 so that 0 · log(0) is 0, with a bounded derivative, as in
        PyTorch.
        """
        x = self._wrap(as_float(self.uop))
        return with_derivative(x.log().maximum(-100.0), x, Derivative(_log_derivative))

    @composite
    def binary_crossentropy_logits(
        self,
        Y: Self,  # noqa: N803
        reduction: str = "mean",
        pos_weight: Self | None = None,
    ) -> Self:
        """binary_crossentropy of sigmoid(x), without overflow.

        >>> round(Tensor([0.0]).binary_crossentropy_logits(Tensor([1.0])).item(), 5)
        0.69315
        """
        wanted = self._given(Y, "the target")
        yes, no = self.logsigmoid(), (-self).logsigmoid()
        weighted = yes if pos_weight is None else yes * pos_weight
        return (-(wanted * weighted) - (1 - wanted) * no)._collected(reduction)

    @composite
    def sparse_categorical_crossentropy(
        self,
        Y: Self,  # noqa: N803
        ignore_index: int = -1,
        label_smoothing: float = 0.0,
        reduction: str = "mean",
    ) -> Self:
        """Cross-entropy of logits (…, classes) with class indices (…); one class may be ignored.

        >>> Tensor([[1.0, 2.0]]).sparse_categorical_crossentropy(Tensor([1])).shape
        ()
        """
        _check_smoothing(label_smoothing)
        Y = self._given(Y, "the classes")  # noqa: N806
        _check_classes(self, Y, axis=self.ndim - 1)
        logs = self.log_softmax()
        counts = Y.ne(ignore_index)
        hit = logs.gather(-1, counts.where(Y, 0).unsqueeze(-1)).squeeze(-1)
        loss = hit if not label_smoothing else hit.lerp(logs.mean(-1), label_smoothing)
        masked = counts.where(-loss, loss.const_like(0))
        if reduction == "mean":
            return masked.sum() / counts.cast(masked.dtype).sum()
        return masked._collected(reduction)

    def cross_entropy(
        self,
        Y: Self,  # noqa: N803
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        weight: Self | None = None,
        ignore_index: int | None = None,
    ) -> Self:
        """Cross-entropy of logits (batch, classes, …) with class indices or probabilities.

        `weight` is the weight of each class; elements of class `ignore_index` do not count.

        >>> round(Tensor([[0.0, 0.0]]).cross_entropy(Tensor([1])).item(), 5)
        0.69315
        """
        _check_smoothing(label_smoothing)
        Y = self._given(Y, "the classes")  # noqa: N806
        axis = 0 if self.ndim == 1 else 1
        if weight is not None:
            weight = _checked_weight(self, self._given(weight, "the weight"), axis)
        if Y.ndim < self.ndim:
            _check_classes(self, Y, axis)
            if ignore_index is None:
                check_range(Y, 0, int(self.shape[axis]), axis)
            return self._by_class(Y, weight, ignore_index, axis, reduction, label_smoothing)
        if ignore_index is not None and ignore_index >= 0:
            raise ValueError("ignore_index is a class number, and there are probabilities instead")
        if Y.shape != self.shape:
            raise ShapeError(f"cross-entropy of {self.shape} with probabilities {Y.shape}")
        return self._by_probability(Y, weight, axis, reduction, label_smoothing)

    @composite
    def _by_probability(
        self, shares: Self, weight: Self | None, axis: int, reduction: str, smoothing: float
    ) -> Self:
        classes = int(self.shape[axis])
        soft = shares if not smoothing else shares * (1 - smoothing) + smoothing / classes
        logs = self.log_softmax(axis)
        logs = logs if weight is None else logs * _along(weight, self, axis)
        return (-(logs * soft).sum(axis))._collected(reduction)

    @composite
    def _by_class(
        self,
        classes: Self,
        weight: Self | None,
        ignore_index: int | None,
        axis: int,
        reduction: str,
        smoothing: float,
    ) -> Self:
        logs = self.log_softmax(axis)
        hits = logs._likelihood(classes, weight, ignore_index, "none", axis)
        if smoothing:
            weighted = logs if weight is None else logs * _along(weight, self, axis)
            others = -weighted.mean(axis)
            if ignore_index is not None:
                others = classes.ne(ignore_index).where(others, others.const_like(0))
            hits = hits.lerp(others, smoothing)
        if reduction != "mean" or (weight is None and ignore_index is None):
            return hits._collected(reduction)
        return hits.sum() / logs._counts(classes, weight, ignore_index).sum()

    def nll_loss(
        self,
        Y: Self,  # noqa: N803
        weight: Self | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> Self:
        """The negative log-likelihood: minus the log-probabilities (batch, classes, …) at the class
        indices.

        >>> Tensor([[-1.0, -2.0], [-3.0, -4.0]]).nll_loss(Tensor([0, 1])).item()
        2.5
        """
        Y = self._given(Y, "the classes")  # noqa: N806
        axis = 0 if self.ndim == 1 else 1
        _check_classes(self, Y, axis)
        if weight is not None:
            weight = _checked_weight(self, self._given(weight, "the weight"), axis)
        if ignore_index is None:
            check_range(Y, 0, int(self.shape[axis]), axis)
        return self._likelihood(Y, weight, ignore_index, reduction, axis)

    @composite
    def _likelihood(
        self,
        Y: Self,  # noqa: N803
        weight: Self | None,
        ignore_index: int | None,
        reduction: str,
        axis: int,
    ) -> Self:
        scale = self._counts(Y, weight, ignore_index)
        chosen = Y if ignore_index is None else Y.ne(ignore_index).where(Y, 0)
        loss = -self.gather(axis, chosen.unsqueeze(axis)).squeeze(axis) * scale
        # Multiplying by 0 is not enough where the logarithm is infinite
        if ignore_index is not None:
            loss = Y.ne(ignore_index).where(loss, loss.const_like(0))
        if reduction == "mean":
            return loss.sum() / scale.sum()
        return loss._collected(reduction)

    def _counts(self, classes: Self, weight: Self | None, ignore_index: int | None) -> Self:
        """The weight of each element."""
        if weight is None:
            scale = self._wrap(classes.ones_like(dtype=self.dtype).uop)
        elif ignore_index is None:
            scale = weight[classes]
        else:
            scale = weight[classes.ne(ignore_index).where(classes, 0)]
        if ignore_index is None:
            return scale
        return classes.ne(ignore_index).where(scale, scale.const_like(0))


def _check_smoothing(amount: float) -> None:
    if not 0 <= amount <= 1:
        raise ValueError(f"label_smoothing lies between 0 and 1, not {amount}")


def _checked_weight(x: L, weight: L, axis: int) -> L:
    if weight.shape != (x.shape[axis],):
        raise ShapeError(
            f"a weight of shape {weight.shape} does not fit logits of shape {x.shape}",
            hint=f"it needs a number for each of {x.shape[axis]} classes",
        )
    return weight


def _along(weight: L, x: L, axis: int) -> L:
    """A vector with one number per class, along the class axis."""
    return weight.reshape(tuple(-1 if one == axis else 1 for one in range(x.ndim)))


def _check_classes(x: TensorCore, classes: TensorCore, axis: int) -> None:
    """Check that class indices have the shape of the logits without the class axis."""
    if classes.dtype.kind not in ("int", "uint"):
        raise DTypeError(
            f"classes are ints, not {classes.dtype.name}", hint="cast them, or pass probabilities"
        )
    axis_of(axis, x.ndim)
    wanted = x.shape[:axis] + x.shape[axis + 1 :]
    if classes.shape != wanted:
        raise ShapeError(
            f"classes of shape {classes.shape} do not fit logits of shape {x.shape}",
            hint=f"they need the shape {wanted}",
        )
