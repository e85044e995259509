"""SGD, LARS, Muon: steps along a running sum of gradients."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import NamedTuple, Unpack

from glassgrad.base.errors import GradientError
from glassgrad.nn.optim.optimizer import Optimizer, Place
from glassgrad.tensor.tensor import Tensor

# What a step writes: functions of a way and tensors alone (see Optimizer._update).


class Way(NamedTuple):
    """How steps are made of gradients.

    `before` and `after`: how much a parameter's gradient, and how much the parameter itself is made
    smaller. Steps are longer by `stretch`. With `share` they are in proportion to the length of the
    parameter; with `turns`, a number of rounds and coefficients, they go along the nearest matrix
    whose rows are orthogonal.
    """

    momentum: float
    before: float
    after: float = 0.0
    nesterov: bool = False
    classic: bool = False
    share: float = 0.0
    decay: float = 0.0
    turns: tuple[int, tuple[float, ...]] | None = None
    stretch: float = 1.0


def _rate(way: Way, param: Tensor, gradient: Tensor, lr: Tensor) -> Tensor:
    if not way.share:
        return lr if way.stretch == 1 else lr * way.stretch
    length, slope = norm(param), norm(gradient)
    share = length * way.share / (slope + length * way.decay)
    return ((length > 0) & (slope > 0)).where(share, 1.0) * lr


def _push(way: Way, param: Tensor, gradient: Tensor, lr: Tensor) -> Tensor:
    """What a gradient adds to the running sum."""
    push = gradient + param * way.before if way.before else gradient
    return push * _rate(way, param, gradient, lr) if way.classic else push


def _velocity(way: Way, velocity: Tensor, param: Tensor, gradient: Tensor, lr: Tensor) -> Tensor:
    return velocity * way.momentum + _push(way, param, gradient, lr)


def _moved(
    way: Way, param: Tensor, gradient: Tensor, lr: Tensor, velocity: Tensor | None = None
) -> Tensor:
    """A parameter after a step, along the running sum if there is one."""
    step = _push(way, param, gradient, lr) if velocity is None or way.nesterov else velocity
    if velocity is not None and way.nesterov:
        step = step + velocity * way.momentum
    step = step if way.turns is None else _turned(step, *way.turns)
    kept = param * (1 - lr * way.after) if way.after else param
    return kept - (step if way.classic else step * _rate(way, param, gradient, lr))


def _turned(step: Tensor, rounds: int, coefficients: tuple[float, ...]) -> Tensor:
    """The nearest matrix whose rows are orthogonal, of (out channels, everything else)."""
    flat = step.reshape(int(step.shape[0]), -1)
    return flat.newton_schulz(rounds, coefficients).reshape(step.shape)


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

    @property
    def way(self) -> Way:
        return Way(self.momentum, self.weight_decay, 0.0, self.nesterov, self.classic)

    def _write(self, gradients: list[Tensor]) -> list[Tensor]:
        way = (self.way,)
        for number, (param, gradient) in enumerate(zip(self.params, gradients, strict=True)):
            velocity = self.velocity[number : number + 1]
            for one in velocity:
                self._update(one, _velocity, way, one, param, gradient, self.lr)
            self._update(param, _moved, way, param, gradient, self.lr, *velocity)
        return [*self.params, *self.velocity]


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

    @property
    def way(self) -> Way:
        before, after = (self.weight_decay, 0.0) if self.pre_wd else (0.0, self.weight_decay)
        turns = (self.ns_steps, tuple(self.ns_coefficients)) if self.ns_coefficients else None
        how = (self.nesterov, self.classic, self.tcoef, self.weight_decay, turns)
        return Way(self.momentum, before, after, *how)


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
        turns = (self.ns_steps, tuple(self.ns_coefficients))
        way = Way(self.momentum, 0.0, self.weight_decay, self.nesterov, turns=turns)
        for param, gradient, velocity in zip(self.params, gradients, self.velocity, strict=True):
            rows = int(param.shape[0])
            own = (way._replace(stretch=sqrt(max(1.0, rows * rows / param.numel()))),)
            self._update(velocity, _velocity, own, velocity, param, gradient, self.lr)
            self._update(param, _moved, own, param, gradient, self.lr, velocity)
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
    wide = x.detach() if x.dtype.bits >= 32 else x.detach().float()
    return wide.square().sum().sqrt()
