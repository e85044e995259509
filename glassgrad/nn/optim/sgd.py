"""SGD, LARS and Muon: optimisers with momentum."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import NamedTuple, Unpack

from glassgrad.base.errors import GradientError
from glassgrad.nn.optim.optimizer import Optimizer, Placement
from glassgrad.tensor.tensor import Tensor

# Updates: pure functions of a Rule and tensors (see Optimizer._update).


class Rule(NamedTuple):
    """How steps are computed from gradients; a key of deferred nodes, therefore hashable.

    `l2` is weight decay added to the gradient, `decoupled` weight decay of the parameter itself.
    `trust` scales steps by the norm of the parameter (LARS), whose formula includes `decay`.
    `orthogonalize`, (Newton-Schulz iterations, coefficients), replaces a step by the nearest matrix
    with orthogonal rows (Muon). `scale` multiplies the learning rate.
    """

    momentum: float
    l2: float
    decoupled: float = 0.0
    nesterov: bool = False
    classic: bool = False
    trust: float = 0.0
    decay: float = 0.0
    orthogonalize: tuple[int, tuple[float, ...]] | None = None
    scale: float = 1.0


def _rate(rule: Rule, param: Tensor, gradient: Tensor, lr: Tensor) -> Tensor:
    if not rule.trust:
        return lr if rule.scale == 1 else lr * rule.scale
    param_norm, grad_norm = norm(param), norm(gradient)
    trust_ratio = param_norm * rule.trust / (grad_norm + param_norm * rule.decay)
    return ((param_norm > 0) & (grad_norm > 0)).where(trust_ratio, 1.0) * lr


def _increment(rule: Rule, param: Tensor, gradient: Tensor, lr: Tensor) -> Tensor:
    """What a gradient adds to the velocity."""
    step = gradient + param * rule.l2 if rule.l2 else gradient
    return step * _rate(rule, param, gradient, lr) if rule.classic else step


def _velocity(rule: Rule, velocity: Tensor, param: Tensor, gradient: Tensor, lr: Tensor) -> Tensor:
    return velocity * rule.momentum + _increment(rule, param, gradient, lr)


def _updated(
    rule: Rule, param: Tensor, gradient: Tensor, lr: Tensor, velocity: Tensor | None = None
) -> Tensor:
    """A parameter after a step, with momentum if there is a velocity."""
    step = _increment(rule, param, gradient, lr) if velocity is None or rule.nesterov else velocity
    if velocity is not None and rule.nesterov:
        step = step + velocity * rule.momentum
    step = step if rule.orthogonalize is None else _orthogonalized(step, *rule.orthogonalize)
    kept = param * (1 - lr * rule.decoupled) if rule.decoupled else param
    return kept - (step if rule.classic else step * _rate(rule, param, gradient, lr))


def _orthogonalized(step: Tensor, iterations: int, coefficients: tuple[float, ...]) -> Tensor:
    """The nearest matrix with orthogonal rows, for a step seen as (out channels, all else)."""
    flat = step.reshape(int(step.shape[0]), -1)
    return flat.newton_schulz(iterations, coefficients).reshape(step.shape)


class SGD(Optimizer):
    """w - lr * g, with momentum and weight decay.

    With `classic` the velocity accumulates lr * g instead of g, so a new learning rate does not
    affect earlier steps.

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
        **placement: Unpack[Placement],
    ) -> None:
        super().__init__(params, lr, **placement)
        self.momentum, self.weight_decay = momentum, weight_decay
        self.nesterov, self.classic = nesterov, classic
        self.velocity = self._zeros() if momentum else []

    @property
    def rule(self) -> Rule:
        return Rule(self.momentum, self.weight_decay, 0.0, self.nesterov, self.classic)

    def _write(self, gradients: list[Tensor]) -> list[Tensor]:
        rule = (self.rule,)
        for number, (param, gradient) in enumerate(zip(self.params, gradients, strict=True)):
            velocity = self.velocity[number : number + 1]
            for one in velocity:
                self._update(one, _velocity, rule, one, param, gradient, self.lr)
            self._update(param, _updated, rule, param, gradient, self.lr, *velocity)
        return [*self.params, *self.velocity]


class LARS(SGD):
    """SGD whose steps are scaled by the norm of each parameter (You and others, 2017).

    `tcoef=0` turns the scaling off. With `ns_coefficients` steps are orthogonalised as in Muon, by
    `ns_steps` Newton-Schulz iterations. With `pre_wd=False` weight decay is decoupled.
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
        **placement: Unpack[Placement],
    ) -> None:
        super().__init__(params, lr, momentum, weight_decay, nesterov, classic, **placement)
        self.ns_steps, self.ns_coefficients = ns_steps, ns_coefficients
        self.pre_wd, self.tcoef = pre_wd, tcoef
        if ns_coefficients:
            _refuse_vectors(self.params, "LARS with ns_coefficients")

    @property
    def rule(self) -> Rule:
        l2, decoupled = (self.weight_decay, 0.0) if self.pre_wd else (0.0, self.weight_decay)
        orthogonalize = (
            (self.ns_steps, tuple(self.ns_coefficients)) if self.ns_coefficients else None
        )
        rest = (self.nesterov, self.classic, self.tcoef, self.weight_decay, orthogonalize)
        return Rule(self.momentum, l2, decoupled, *rest)


class Muon(Optimizer):
    """Momentum steps, orthogonalised by Newton-Schulz iterations (Jordan, 2024); for matrices only.

    A convolution weight is treated as (out channels, all else). As in PyTorch, steps of tall
    matrices are scaled up, and weight decay is decoupled.
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
        **placement: Unpack[Placement],
    ) -> None:
        super().__init__(params, lr, **placement)
        _refuse_vectors(self.params, "Muon")
        self.momentum, self.weight_decay, self.nesterov = momentum, weight_decay, nesterov
        self.ns_steps, self.ns_coefficients = ns_steps, ns_coefficients
        self.velocity = self._zeros()

    def _write(self, gradients: list[Tensor]) -> list[Tensor]:
        orthogonalize = (self.ns_steps, tuple(self.ns_coefficients))
        rule = Rule(
            self.momentum,
            l2=0.0,
            decoupled=self.weight_decay,
            nesterov=self.nesterov,
            orthogonalize=orthogonalize,
        )
        for param, gradient, velocity in zip(self.params, gradients, self.velocity, strict=True):
            rows = int(param.shape[0])
            scaled = (rule._replace(scale=sqrt(max(1.0, rows * rows / param.numel()))),)
            self._update(velocity, _velocity, scaled, velocity, param, gradient, self.lr)
            self._update(param, _updated, scaled, param, gradient, self.lr, velocity)
        return [*self.params, *self.velocity]


def _refuse_vectors(params: list[Tensor], name: str) -> None:
    vectors = [param.shape for param in params if param.ndim < 2]
    if vectors:
        raise GradientError(
            f"{name} updates matrices, not a parameter of shape {vectors[0]}",
            hint="OptimizerGroup(Muon(matrices), AdamW(others))",
        )


def norm(x: Tensor) -> Tensor:
    """The Euclidean norm of a tensor, in float32 at least."""
    wide = x.detach() if x.dtype.bits >= 32 else x.detach().float()
    return wide.square().sum().sqrt()
