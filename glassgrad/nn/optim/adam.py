"""Adam, AdamW, LAMB: steps scaled by running means of the gradient and of its square."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, log
from typing import Unpack

from glassgrad.nn.optim.optimizer import Optimizer, Place, Update
from glassgrad.nn.optim.sgd import norm
from glassgrad.tensor.extension import defer
from glassgrad.tensor.tensor import Tensor

# What a step writes: functions of numbers and tensors alone (see Optimizer._update).


def running_mean(keep: float, decay: float, mean: Tensor, g: Tensor, param: Tensor) -> Tensor:
    """The mean of gradients, with weight decay, after one more."""
    return mean * keep + decayed(decay, g, param) * (1 - keep)


def running_square(keep: float, decay: float, square: Tensor, g: Tensor, param: Tensor) -> Tensor:
    """The mean of squares of gradients, with weight decay, after one more."""
    g = decayed(decay, g, param)
    return square * keep + g * g * (1 - keep)


def decayed(decay: float, g: Tensor, param: Tensor) -> Tensor:
    """A gradient that makes its parameter smaller, too."""
    return g + param * decay if decay else g


def _step(eps: float, mean: Tensor, square: Tensor, pair: Tensor) -> Tensor:
    unbias, spread = pair.split(1)
    return mean * unbias / (square.sqrt() * spread + eps)


def _moved(
    eps: float, decay: float, param: Tensor, mean: Tensor, square: Tensor, pair: Tensor, lr: Tensor
) -> Tensor:
    step = decayed(decay, _step(eps, mean, square, pair), param)
    return param - step * lr


def _moved_in_proportion(
    eps: float, decay: float, param: Tensor, mean: Tensor, square: Tensor, pair: Tensor, lr: Tensor
) -> Tensor:
    step = decayed(decay, _step(eps, mean, square, pair), param)
    length, reach = norm(param), norm(step)
    share = ((length > 0) & (reach > 0)).where(length / reach, 1.0)
    return param - step * (share * lr)


def _next(count: Tensor) -> Tensor:
    return count + 1


def _corrections(b1: float, b2: float, count: Tensor) -> Tensor:
    """What means and roots of squares are multiplied by to be unbiased."""
    mean_part, square_part = _risen(count, b1, b2).split(1)
    return Tensor.cat(mean_part.reciprocal(), square_part.rsqrt())


def _risen(count: Tensor, *decays: float) -> Tensor:
    """1 - decay^count for two decays, without the cancellation.

    1 - exp(x) = 2t / (t - 1) for t = tanh(x / 2); of a decay of 0, x is -inf and t is -1.
    """
    first, second = (log(decay) / 2 if decay else -inf for decay in decays)
    is_first = Tensor.arange(2) == 0
    half = (count * is_first.where(count.const_like(first), count.const_like(second))).tanh()
    return half * 2 / (half - 1)


class Adam(Optimizer):
    """m / sqrt(v), where m and v are unbiased running means of the gradient and of its square.

    Weight decay is added to the gradient; AdamW keeps it apart.

    >>> w = Tensor([1.0])
    >>> optimizer = Adam([w], lr=0.25)
    >>> _ = (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.tolist()
    [0.75]
    """

    decays_apart = False

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        **place: Unpack[Place],
    ) -> None:
        super().__init__(params, lr, **place)
        self.b1, self.b2, self.eps, self.weight_decay = b1, b2, eps, weight_decay
        self.mean, self.square = self._zeros(), self._zeros()
        self.count = self._number(0.0)  # steps; a float holds the first 16 million

    def _write(self, gradients: list[Tensor]) -> list[Tensor]:
        self._update(self.count, _next, (), self.count)
        # Two numbers for all parameters, computed once.
        decays = (self.b1, self.b2)
        corrections = defer(_corrections, decays, (self.count,), (2,), self.count.dtype)
        pair = Tensor._from_uop(corrections).contiguous()
        apart, inside = (self.weight_decay, 0.0) if self.decays_apart else (0.0, self.weight_decay)
        first, second, last = (self.b1, inside), (self.b2, inside), (self.eps, apart)
        rows = zip(self.params, gradients, self.mean, self.square, strict=True)
        for param, gradient, mean, square in rows:
            self._update(mean, running_mean, first, mean, gradient, param)
            self._update(square, running_square, second, square, gradient, param)
            self._update(param, self.moved, last, param, mean, square, pair, self.lr)
        return [*self.params, *self.mean, *self.square, self.count]

    @property
    def moved(self) -> Update:
        """What makes the next value of a parameter."""
        return _moved


class AdamW(Adam):
    """Adam with weight decay that does not go through the running means."""

    decays_apart = True

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        **place: Unpack[Place],
    ) -> None:
        super().__init__(params, lr, b1, b2, eps, weight_decay, **place)


class LAMB(AdamW):
    """AdamW with steps in proportion to the length of each parameter (You and others, 2019).

    With `adam` they are AdamW's own: the same state, without the proportion.
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
        **place: Unpack[Place],
    ) -> None:
        super().__init__(params, lr, b1, b2, eps, weight_decay, **place)
        self.adam = adam

    @property
    def moved(self) -> Update:
        return _moved if self.adam else _moved_in_proportion
