"""Loss functions: cross-entropy, negative log-likelihood and binary cross-entropy."""

from __future__ import annotations

from typing import Self, TypeVar

from glassgrad.base.errors import DTypeError, ShapeError
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.tensor.autograd.gradient import Derivative
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.lazy.composite import composite
from glassgrad.tensor.ops.functions import with_derivative
from glassgrad.tensor.ops.indexing import check_range
from glassgrad.tensor.record import as_float, axis_of

REDUCTIONS = ("mean", "sum", "none")
# The smallest divisor in the derivative of a logarithm: at 0 it would be infinite.
MIN_LOG_ARGUMENT = 1e-12


def _log_derivative(y: UOp, g: UOp) -> UOp:
    return g.alu(Ops.FDIV, y.src[1].maximum(MIN_LOG_ARGUMENT))


L = TypeVar("L", bound=TensorCore)


class Losses(TensorCore):
    """cross_entropy, nll_loss, binary_crossentropy and others."""

    __slots__ = ()

    def _reduce_loss(self, reduction: str) -> Self:
        if reduction not in REDUCTIONS:
            raise ValueError(f"reduction is one of {', '.join(REDUCTIONS)}, not {reduction!r}")
        return self.mean() if reduction == "mean" else self.sum() if reduction == "sum" else self

    @composite
    def binary_crossentropy(self, Y: Self, reduction: str = "mean") -> Self:  # noqa: N803
        """-Y log(x) - (1-Y) log(1-x), for probabilities x.

        >>> round(Tensor([0.5, 0.5]).binary_crossentropy(Tensor([0.0, 1.0])).item(), 5)
        0.69315
        """
        wanted = self._as_tensor(Y, "the target")
        yes, no = self._bounded_log(), (1 - self)._bounded_log()
        return (-(wanted * yes) - (1 - wanted) * no)._reduce_loss(reduction)

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
        wanted = self._as_tensor(Y, "the target")
        yes, no = self.logsigmoid(), (-self).logsigmoid()
        weighted = yes if pos_weight is None else yes * pos_weight
        return (-(wanted * weighted) - (1 - wanted) * no)._reduce_loss(reduction)

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
        Y = self._as_tensor(Y, "the classes")  # noqa: N806
        _check_classes(self, Y, axis=self.ndim - 1)
        logs = self.log_softmax()
        counts = Y.ne(ignore_index)
        hit = logs.gather(-1, counts.where(Y, 0).unsqueeze(-1)).squeeze(-1)
        loss = hit if not label_smoothing else hit.lerp(logs.mean(-1), label_smoothing)
        masked = counts.where(-loss, loss.const_like(0))
        if reduction == "mean":
            return masked.sum() / counts.cast(masked.dtype).sum()
        return masked._reduce_loss(reduction)

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
        Y = self._as_tensor(Y, "the classes")  # noqa: N806
        axis = 0 if self.ndim == 1 else 1
        if weight is not None:
            weight = _checked_weight(self, self._as_tensor(weight, "the weight"), axis)
        if Y.ndim < self.ndim:
            _check_classes(self, Y, axis)
            if ignore_index is None:
                check_range(Y, 0, int(self.shape[axis]), axis)
            return self._index_cross_entropy(
                Y, weight, ignore_index, axis, reduction, label_smoothing
            )
        if ignore_index is not None and ignore_index >= 0:
            raise ValueError("ignore_index is a class number, and there are probabilities instead")
        if Y.shape != self.shape:
            raise ShapeError(f"cross-entropy of {self.shape} with probabilities {Y.shape}")
        return self._soft_cross_entropy(Y, weight, axis, reduction, label_smoothing)

    @composite
    def _soft_cross_entropy(
        self, shares: Self, weight: Self | None, axis: int, reduction: str, smoothing: float
    ) -> Self:
        classes = int(self.shape[axis])
        soft = shares if not smoothing else shares * (1 - smoothing) + smoothing / classes
        logs = self.log_softmax(axis)
        logs = logs if weight is None else logs * _along(weight, self, axis)
        return (-(logs * soft).sum(axis))._reduce_loss(reduction)

    @composite
    def _index_cross_entropy(
        self,
        classes: Self,
        weight: Self | None,
        ignore_index: int | None,
        axis: int,
        reduction: str,
        smoothing: float,
    ) -> Self:
        logs = self.log_softmax(axis)
        hits = logs._nll(classes, weight, ignore_index, "none", axis)
        if smoothing:
            weighted = logs if weight is None else logs * _along(weight, self, axis)
            others = -weighted.mean(axis)
            if ignore_index is not None:
                others = classes.ne(ignore_index).where(others, others.const_like(0))
            hits = hits.lerp(others, smoothing)
        if reduction != "mean" or (weight is None and ignore_index is None):
            return hits._reduce_loss(reduction)
        return hits.sum() / logs._element_weights(classes, weight, ignore_index).sum()

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
        Y = self._as_tensor(Y, "the classes")  # noqa: N806
        axis = 0 if self.ndim == 1 else 1
        _check_classes(self, Y, axis)
        if weight is not None:
            weight = _checked_weight(self, self._as_tensor(weight, "the weight"), axis)
        if ignore_index is None:
            check_range(Y, 0, int(self.shape[axis]), axis)
        return self._nll(Y, weight, ignore_index, reduction, axis)

    @composite
    def _nll(
        self,
        Y: Self,  # noqa: N803
        weight: Self | None,
        ignore_index: int | None,
        reduction: str,
        axis: int,
    ) -> Self:
        scale = self._element_weights(Y, weight, ignore_index)
        chosen = Y if ignore_index is None else Y.ne(ignore_index).where(Y, 0)
        loss = -self.gather(axis, chosen.unsqueeze(axis)).squeeze(axis) * scale
        # Multiplying by 0 is not enough where the logarithm is infinite
        if ignore_index is not None:
            loss = Y.ne(ignore_index).where(loss, loss.const_like(0))
        if reduction == "mean":
            return loss.sum() / scale.sum()
        return loss._reduce_loss(reduction)

    def _element_weights(
        self, classes: Self, weight: Self | None, ignore_index: int | None
    ) -> Self:
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
