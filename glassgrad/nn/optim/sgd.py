"""SGD, LARS, Muon: steps along a running sum of gradients."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import Unpack

from glassgrad.base.errors import GradientError
from glassgrad.nn.optim.optimizer import Optimizer, Place
from glassgrad.tensor.tensor import Tensor


class SGD(Optimizer):
    """w - lr * g, with momentum and weight decay.

    With `classic` the running sum is made of steps, not of gradients: a learning rate that
    changes does not change the steps that are already in it.

    >>> w = Tensor([1.0])
    >>> optimizer = SGD([w], lr=0.5)
    >>> _ = (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.tolist()
    [0.0]
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.001,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        classic: bool = False,
        **place: Unpack[Place],
    ) -> None:
        super().__init__(params, lr, **place)
        self.momentum, self.weight_decay = momentum, weight_decay
        self.nesterov, self.classic = nesterov, classic
        self.velocity = self._zeros() if momentum else []

    def _write(self, gradients: list[Tensor]) -> list[Tensor]:
        for number, (param, gradient) in enumerate(zip(self.params, gradients, strict=True)):
            before, after = self._decays()
            step = gradient + param * before if before else gradient
            share = self._share(param, gradient)
            rate = self.lr if share is None else share * self.lr
            step = step * rate if self.classic else step
            step = self._turned(self._with_momentum(step, number))
            kept = param * (1 - self.lr * after) if after else param
            self._set(param, kept - (step if self.classic else step * rate))
        return [*self.params, *self.velocity]

    def _decays(self) -> tuple[float, float]:
        """How much a parameter's gradient, and how much the parameter itself is made smaller."""
        return self.weight_decay, 0.0

    def _with_momentum(self, step: Tensor, number: int) -> Tensor:
        if not self.momentum:
            return step
        velocity = self.velocity[number]
        self._set(velocity, velocity * self.momentum + step)
        return step + velocity * self.momentum if self.nesterov else velocity

    def _share(self, param: Tensor, gradient: Tensor) -> Tensor | None:
        """What a step is multiplied with besides the learning rate."""
        return None

    def _turned(self, step: Tensor) -> Tensor:
        return step


class LARS(SGD):
    """SGD with steps in proportion to the length of each parameter (You and others, 2017).

    With a `tcoef` of 0 they are not. With `ns_coefficients` a step goes along the nearest matrix
    whose rows are orthogonal, as in Muon, in `ns_steps` rounds. Unless `pre_wd`, weight decay does
    not go through the running sum.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.001,
        momentum: float = 0.9,
        weight_decay: float = 1e-4,
        ns_steps: int = 0,
        ns_coefficients: tuple[float, ...] | None = None,
        nesterov: bool = False,
        classic: bool = True,
        pre_wd: bool = True,
        tcoef: float = 0.001,
        **place: Unpack[Place],
    ) -> None:
        super().__init__(params, lr, momentum, weight_decay, nesterov, classic, **place)
        self.ns_steps, self.ns_coefficients = ns_steps, ns_coefficients
        self.pre_wd, self.tcoef = pre_wd, tcoef
        if ns_coefficients:
            _refuse_vectors(self.params, "LARS with ns_coefficients")

    def _decays(self) -> tuple[float, float]:
        return (self.weight_decay, 0.0) if self.pre_wd else (0.0, self.weight_decay)

    def _share(self, param: Tensor, gradient: Tensor) -> Tensor | None:
        if not self.tcoef:
            return None
        length, slope = norm(param), norm(gradient)
        share = length * self.tcoef / (slope + length * self.weight_decay)
        return ((length > 0) & (slope > 0)).where(share, 1.0)

    def _turned(self, step: Tensor) -> Tensor:
        if not self.ns_coefficients:
            return step
        flat = step.reshape(int(step.shape[0]), -1)
        return flat.newton_schulz(self.ns_steps, self.ns_coefficients).reshape(step.shape)


class Muon(Optimizer):
    """Steps along the nearest matrix whose rows are orthogonal (Jordan, 2024); for matrices only.

    Weights of convolutions are taken as (out channels, everything else). As in PyTorch, tall
    matrices take longer steps, and weight decay does not go through the running sum.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.001,
        momentum: float = 0.95,
        weight_decay: float = 0.1,
        ns_steps: int = 5,
        ns_coefficients: tuple[float, ...] = (3.4445, -4.775, 2.0315),
        nesterov: bool = True,
        **place: Unpack[Place],
    ) -> None:
        super().__init__(params, lr, **place)
        _refuse_vectors(self.params, "Muon")
        self.momentum, self.weight_decay, self.nesterov = momentum, weight_decay, nesterov
        self.ns_steps, self.ns_coefficients = ns_steps, ns_coefficients
        self.velocity = self._zeros()

    def _write(self, gradients: list[Tensor]) -> list[Tensor]:
        for param, gradient, velocity in zip(self.params, gradients, self.velocity, strict=True):
            self._set(velocity, velocity * self.momentum + gradient)
            step = gradient + velocity * self.momentum if self.nesterov else velocity
            rows = int(param.shape[0])
            flat = step.reshape(rows, -1)
            even = flat.newton_schulz(self.ns_steps, self.ns_coefficients).reshape(param.shape)
            scale = sqrt(max(1.0, rows / int(flat.shape[1])))
            kept = param * (1 - self.lr * self.weight_decay) if self.weight_decay else param
            self._set(param, kept - even * (self.lr * scale))
        return [*self.params, *self.velocity]


def _refuse_vectors(params: list[Tensor], name: str) -> None:
    vectors = [param.shape for param in params if param.ndim < 2]
    if vectors:
        raise GradientError(
            f"{name} moves matrices, not a parameter of shape {vectors[0]}",
            hint="OptimizerGroup(Muon(matrices), AdamW(others))",
        )


def norm(x: Tensor) -> Tensor:
    """The length of a tensor as a vector."""
    return x.detach().float().square().sum().sqrt()
