"""Optimisers: gradients -> new parameters, written into the same memory."""

from __future__ import annotations

from collections.abc import Iterable

from glassgrad.base.errors import GradientError
from glassgrad.tensor.tensor import Tensor


class Optimizer:
    """Parameters, and a rule that moves them against their gradients.

    Numbers that change from step to step are tensors, so every step is the same program.
    """

    def __init__(self, params: Iterable[Tensor], lr: float) -> None:
        self.params = list(dict.fromkeys(params))
        if not self.params:
            raise GradientError("an optimiser needs parameters", hint="pass a list of tensors")
        for param in self.params:
            param.is_param_()
        self.lr = Tensor([float(lr)], requires_grad=False)
        Tensor.realize(*self.params)

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for param in self.params:
            param.grad = None

    def step(self) -> None:
        """Move every parameter once."""
        Tensor.realize(*self.schedule_step())

    def schedule_step(self) -> list[Tensor]:
        """The tensors that a step writes, not computed yet."""
        for number, param in enumerate(self.params):
            if param.grad is None:
                raise GradientError(
                    f"parameter {number} of shape {param.shape} has no gradient",
                    hint="call backward() on a value that depends on it first",
                )
        return self._write([param.grad for param in self.params if param.grad is not None])

    def _write(self, gradients: list[Tensor]) -> list[Tensor]:
        raise NotImplementedError

    def _zeros(self) -> list[Tensor]:
        made = [param.zeros_like().is_param_(is_param=False) for param in self.params]
        Tensor.realize(*made)
        return made


class SGD(Optimizer):
    """w - lr * g, with momentum and weight decay."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.001,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        super().__init__(params, lr)
        self.momentum, self.weight_decay, self.nesterov = momentum, weight_decay, nesterov
        self.velocity = self._zeros() if momentum else []

    def _write(self, gradients: list[Tensor]) -> list[Tensor]:
        for number, (param, gradient) in enumerate(zip(self.params, gradients, strict=True)):
            step = gradient + param * self.weight_decay if self.weight_decay else gradient
            if self.momentum:
                velocity = self.velocity[number]
                velocity.assign(velocity * self.momentum + step)
                step = step + velocity * self.momentum if self.nesterov else velocity
            param.assign((param - step * self.lr).cast(param.dtype))
        return [*self.params, *self.velocity]


class Adam(Optimizer):
    """Steps scaled by running means of the gradient and of its square."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, lr)
        self.b1, self.b2, self.eps, self.weight_decay = b1, b2, eps, weight_decay
        self.mean, self.square = self._zeros(), self._zeros()
        self.rest = [Tensor([1.0], requires_grad=False) for _ in "mv"]  # b1^t and b2^t

    def _write(self, gradients: list[Tensor]) -> list[Tensor]:
        for rest, decay in zip(self.rest, (self.b1, self.b2), strict=True):
            rest.assign(rest * decay)
        rows = zip(self.params, gradients, self.mean, self.square, strict=True)
        for param, gradient, mean, square in rows:
            mean.assign(mean * self.b1 + gradient * (1 - self.b1))
            square.assign(square * self.b2 + gradient * gradient * (1 - self.b2))
            unbiased = mean / (1 - self.rest[0])
            scale = (square / (1 - self.rest[1])).sqrt() + self.eps
            step = unbiased / scale
            if self.weight_decay:
                step = step + param * self.weight_decay
            param.assign((param - step * self.lr).cast(param.dtype))
        return [*self.params, *self.mean, *self.square, *self.rest]


class AdamW(Adam):
    """Adam with decoupled weight decay on by default."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(params, lr, b1, b2, eps, weight_decay)
