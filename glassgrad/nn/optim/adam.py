"""Adam, AdamW, LAMB: steps scaled by running means of the gradient and of its square."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, log
from typing import Unpack

from glassgrad.nn.optim.optimizer import Optimizer, Place
from glassgrad.nn.optim.sgd import norm
from glassgrad.tensor.tensor import Tensor


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
        mean_part, square_part = _risen(self.count, self.b1, self.b2).split(1)
        sizes = (mean_part.reciprocal(), square_part.rsqrt())
        unbias, spread = Tensor.cat(*sizes).contiguous().split(1)
        rows = zip(self.params, gradients, self.mean, self.square, strict=True)
        for param, gradient, mean, square in rows:
            if self.weight_decay and not self.decays_apart:
                gradient = gradient + param * self.weight_decay
            self._set(mean, mean * self.b1 + gradient * (1 - self.b1))
            self._set(square, square * self.b2 + gradient * gradient * (1 - self.b2))
            step = mean * unbias / (square.sqrt() * spread + self.eps)
            self._set(param, self._step(param, step))
        return [*self.params, *self.mean, *self.square, self.count]

    def _step(self, param: Tensor, step: Tensor) -> Tensor:
        if self.weight_decay and self.decays_apart:
            step = step + param * self.weight_decay
        return param - step * self.lr


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

    def _step(self, param: Tensor, step: Tensor) -> Tensor:
        if self.adam:
            return super()._step(param, step)
        step = step + param * self.weight_decay if self.weight_decay else step
        length, reach = norm(param), norm(step)
        share = ((length > 0) & (reach > 0)).where(length / reach, 1.0)
        return param - step * (share * self.lr)


def _risen(count: Tensor, *decays: float) -> Tensor:
    """1 - decay^count for two decays, without the cancellation.

    1 - exp(x) = 2t / (t - 1) for t = tanh(x / 2); of a decay of 0, x is -inf and t is -1.
    """
    first, second = (log(decay) / 2 if decay else -inf for decay in decays)
    half = (count * (Tensor.arange(2) == 0).where(first, second)).tanh()
    return half * 2 / (half - 1)
