"""Adam, AdamW, LAMB: steps scaled by running means of the gradient and of its square."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, log
from typing import Unpack

from glassgrad.nn.optim.optimizer import Optimizer, Place, Update
from glassgrad.nn.optim.sgd import norm
from glassgrad.tensor.later import later
from glassgrad.tensor.tensor import Tensor

# What a step writes: functions of tensors and numbers alone (see Optimizer._later).


def _mean(mean: Tensor, gradient: Tensor, param: Tensor, b1: float, decay: float) -> Tensor:
    gradient = gradient + param * decay if decay else gradient
    return mean * b1 + gradient * (1 - b1)


def _square(square: Tensor, gradient: Tensor, param: Tensor, b2: float, decay: float) -> Tensor:
    gradient = gradient + param * decay if decay else gradient
    return square * b2 + gradient * gradient * (1 - b2)


def _step(mean: Tensor, square: Tensor, pair: Tensor, eps: float) -> Tensor:
    unbias, spread = pair.split(1)
    return mean * unbias / (square.sqrt() * spread + eps)


def _moved(
    param: Tensor, mean: Tensor, square: Tensor, pair: Tensor, lr: Tensor, eps: float, decay: float
) -> Tensor:
    step = _step(mean, square, pair, eps)
    step = step + param * decay if decay else step
    return param - step * lr


def _moved_in_proportion(
    param: Tensor, mean: Tensor, square: Tensor, pair: Tensor, lr: Tensor, eps: float, decay: float
) -> Tensor:
    step = _step(mean, square, pair, eps)
    step = step + param * decay if decay else step
    length, reach = norm(param), norm(step)
    share = ((length > 0) & (reach > 0)).where(length / reach, 1.0)
    return param - step * (share * lr)


def _corrections(count: Tensor, b1: float, b2: float) -> Tensor:
    """What means and roots of squares are multiplied by to be unbiased."""
    mean_part, square_part = _risen(count, b1, b2).split(1)
    return Tensor.cat(mean_part.reciprocal(), square_part.rsqrt())


def _risen(count: Tensor, *decays: float) -> Tensor:
    """1 - decay^count for two decays, without the cancellation.

    1 - exp(x) = 2t / (t - 1) for t = tanh(x / 2); of a decay of 0, x is -inf and t is -1.
    """
    first, second = (log(decay) / 2 if decay else -inf for decay in decays)
    half = (count * (Tensor.arange(2) == 0).where(first, second)).tanh()
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
        self._set(self.count, self.count + 1)
        # Two numbers for all parameters, computed once.
        corrections = later(_corrections, (2,), self.count.dtype, self.count, self.b1, self.b2)
        pair = Tensor._of(corrections).contiguous()
        apart, inside = (self.weight_decay, 0.0) if self.decays_apart else (0.0, self.weight_decay)
        rows = zip(self.params, gradients, self.mean, self.square, strict=True)
        for param, gradient, mean, square in rows:
            self._later(mean, _mean, mean, gradient, param, self.b1, inside)
            self._later(square, _square, square, gradient, param, self.b2, inside)
            self._later(param, self.moved, param, mean, square, pair, self.lr, self.eps, apart)
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
