"""RMSprop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from glassgrad.nn.optim.adam import decayed, updated_mean, updated_square
from glassgrad.nn.optim.optimizer import Optimizer, Placement
from glassgrad.tensor.tensor import Tensor

# Updates: pure functions of numbers and tensors (see Optimizer._update).


def _step(
    eps: float, decay: float, g: Tensor, param: Tensor, square: Tensor, mean: Tensor | None = None
) -> Tensor:
    variance = square if mean is None else square - mean * mean
    return decayed(decay, g, param) / (variance.sqrt() + eps)


def _velocity(
    momentum: float, eps: float, decay: float, velocity: Tensor, *others: Tensor
) -> Tensor:
    return velocity * momentum + _step(eps, decay, *others)


def _updated(
    eps: float, decay: float, lr: Tensor, g: Tensor, param: Tensor, *means: Tensor
) -> Tensor:
    return param - _step(eps, decay, g, param, *means) * lr


def _updated_by_velocity(lr: Tensor, param: Tensor, velocity: Tensor) -> Tensor:
    return param - velocity * lr


class RMSprop(Optimizer):
    """RMSprop: steps g / sqrt(v), as in PyTorch; `centered` subtracts the squared mean from v.

    >>> w = Tensor([1.0])
    >>> optimizer = RMSprop([w], lr=0.05)
    >>> _ = (w * w).sum().backward()
    >>> optimizer.step()
    >>> round(w.item(), 3)
    0.5
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.01,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        **placement: Unpack[Placement],
    ) -> None:
        super().__init__(params, lr, **placement)
        self.alpha, self.eps, self.weight_decay = alpha, eps, weight_decay
        self.momentum, self.centered = momentum, centered
        self.square = self._zeros()
        self.mean = self._zeros() if centered else []
        self.velocity = self._zeros() if momentum else []

    def _write(self, gradients: list[Tensor]) -> list[Tensor]:
        averaging, rule = (self.alpha, self.weight_decay), (self.eps, self.weight_decay)
        for number, (param, gradient) in enumerate(zip(self.params, gradients, strict=True)):
            square, mean = self.square[number], self.mean[number : number + 1]
            self._update(square, updated_square, averaging, square, gradient, param)
            for one in mean:
                self._update(one, updated_mean, averaging, one, gradient, param)
            given = (gradient, param, square, *mean)
            if self.momentum:
                velocity = self.velocity[number]
                self._update(velocity, _velocity, (self.momentum, *rule), velocity, *given)
                self._update(param, _updated_by_velocity, (), self.lr, param, velocity)
            else:
                self._update(param, _updated, rule, self.lr, *given)
        return [*self.params, *self.square, *self.mean, *self.velocity]
