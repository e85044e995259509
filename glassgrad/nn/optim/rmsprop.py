"""RMSprop: steps scaled by a running mean of the gradient's square."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from glassgrad.nn.optim.optimizer import Optimizer, Place
from glassgrad.tensor.tensor import Tensor


class RMSprop(Optimizer):
    """g / sqrt(v), as in PyTorch; `centered` takes the square of the mean away from v.

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
        **place: Unpack[Place],
    ) -> None:
        super().__init__(params, lr, **place)
        self.alpha, self.eps, self.weight_decay = alpha, eps, weight_decay
        self.momentum, self.centered = momentum, centered
        self.square = self._zeros()
        self.mean = self._zeros() if centered else []
        self.velocity = self._zeros() if momentum else []

    def _write(self, gradients: list[Tensor]) -> list[Tensor]:
        for number, (param, gradient) in enumerate(zip(self.params, gradients, strict=True)):
            if self.weight_decay:
                gradient = gradient + param * self.weight_decay
            step = gradient / (self._spread(number, gradient) + self.eps)
            if self.momentum:
                velocity = self.velocity[number]
                step = self._set(velocity, velocity * self.momentum + step)
            self._set(param, param - step * self.lr)
        return [*self.params, *self.square, *self.mean, *self.velocity]

    def _spread(self, number: int, gradient: Tensor) -> Tensor:
        square = self._running(self.square[number], gradient * gradient)
        if self.centered:
            mean = self._running(self.mean[number], gradient)
            return (square - mean * mean).sqrt()
        return square.sqrt()

    def _running(self, mean: Tensor, new: Tensor) -> Tensor:
        return self._set(mean, mean * self.alpha + new * (1 - self.alpha))
