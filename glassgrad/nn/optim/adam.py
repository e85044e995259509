"""Adam, AdamW and LAMB."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, log
from typing import Unpack

from glassgrad.nn.optim.optimizer import Optimizer, Placement, Update
from glassgrad.nn.optim.sgd import norm
from glassgrad.tensor.extension import defer
from glassgrad.tensor.tensor import Tensor

# Updates: pure functions of numbers and tensors (see Optimizer._update).


def updated_mean(keep: float, decay: float, mean: Tensor, g: Tensor, param: Tensor) -> Tensor:
    """The first moment after one more gradient, with weight decay."""
    return mean * keep + decayed(decay, g, param) * (1 - keep)


def updated_square(keep: float, decay: float, square: Tensor, g: Tensor, param: Tensor) -> Tensor:
    """The second moment after one more gradient, with weight decay."""
    g = decayed(decay, g, param)
    return square * keep + g * g * (1 - keep)


def decayed(decay: float, g: Tensor, param: Tensor) -> Tensor:
    """The gradient with L2 weight decay."""
    return g + param * decay if decay else g


def _step(eps: float, mean: Tensor, square: Tensor, corrections: Tensor) -> Tensor:
    mean_correction, root_correction = corrections.split(1)
    return mean * mean_correction / (square.sqrt() * root_correction + eps)


def _updated(
    eps: float,
    decay: float,
    param: Tensor,
    mean: Tensor,
    square: Tensor,
    corrections: Tensor,
    lr: Tensor,
) -> Tensor:
    step = decayed(decay, _step(eps, mean, square, corrections), param)
    return param - step * lr


def _updated_by_trust_ratio(
    eps: float,
    decay: float,
    param: Tensor,
    mean: Tensor,
    square: Tensor,
    corrections: Tensor,
    lr: Tensor,
) -> Tensor:
    step = decayed(decay, _step(eps, mean, square, corrections), param)
    param_norm, step_norm = norm(param), norm(step)
    is_defined = (param_norm > 0) & (step_norm > 0)
    trust_ratio = is_defined.where(param_norm / step_norm, 1.0)
    return param - step * (trust_ratio * lr)


def _next(count: Tensor) -> Tensor:
    return count + 1


def _corrections(b1: float, b2: float, count: Tensor) -> Tensor:
    """The bias corrections of the first moment and of the root of the second."""
    of_mean, of_square = _one_minus_powers(count, b1, b2).split(1)
    return Tensor.cat(of_mean.reciprocal(), of_square.rsqrt())


def _one_minus_powers(count: Tensor, *decays: float) -> Tensor:
    """1 - decay^count for two decays, without cancellation.

    1 - exp(x) = 2t / (t - 1) for t = tanh(x / 2); for a decay of 0, x is -inf and t is -1.
    """
    first, second = (log(decay) / 2 if decay else -inf for decay in decays)
    is_first = Tensor.arange(2) == 0
    half = (count * is_first.where(count.const_like(first), count.const_like(second))).tanh()
    return half * 2 / (half - 1)


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2014): steps m / sqrt(v) with bias-corrected moments of the gradient.

    Weight decay is added to the gradient (L2); AdamW decouples it.

    >>> w = Tensor([1.0])
    >>> optimizer = Adam([w], lr=0.25)
    >>> _ = (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.tolist()
    [0.75]
    """

    is_decoupled = False

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        **placement: Unpack[Placement],
    ) -> None:
        super().__init__(params, lr, **placement)
        self.b1, self.b2, self.eps, self.weight_decay = b1, b2, eps, weight_decay
        self.mean, self.square = self._zeros(), self._zeros()
        self.count = self._convert_foreign(0.0)  # of steps; float32 counts exactly up to 16 million

    def _write(self, gradients: list[Tensor]) -> list[Tensor]:
        self._update(self.count, _next, (), self.count)
        # Shared by all parameters and computed once.
        decays = (self.b1, self.b2)
        deferred_corrections = defer(_corrections, decays, (self.count,), (2,), self.count.dtype)
        corrections = Tensor._from_uop(deferred_corrections).contiguous()
        decay = self.weight_decay
        decoupled, l2 = (decay, 0.0) if self.is_decoupled else (0.0, decay)
        first, second, last = (self.b1, l2), (self.b2, l2), (self.eps, decoupled)
        rows = zip(self.params, gradients, self.mean, self.square, strict=True)
        for param, gradient, mean, square in rows:
            self._update(mean, updated_mean, first, mean, gradient, param)
            self._update(square, updated_square, second, square, gradient, param)
            self._update(param, self.update_rule, last, param, mean, square, corrections, self.lr)
        return [*self.params, *self.mean, *self.square, self.count]

    @property
    def update_rule(self) -> Update:
        """The function that computes the next value of a parameter."""
        return _updated


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2017)."""

    is_decoupled = True

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        **placement: Unpack[Placement],
    ) -> None:
        super().__init__(params, lr, b1, b2, eps, weight_decay, **placement)


class LAMB(AdamW):
    """AdamW whose steps are scaled by the norm of each parameter (You and others, 2019).

    With `adam=True` the steps are AdamW's: the same state without the scaling.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        adam: bool = False,
        **placement: Unpack[Placement],
    ) -> None:
        super().__init__(params, lr, b1, b2, eps, weight_decay, **placement)
        self.adam = adam

    @property
    def update_rule(self) -> Update:
        return _updated if self.adam else _updated_by_trust_ratio
