"""Modes: what scripts read and set on the class itself, Tensor.training and Tensor.no_grad."""

from __future__ import annotations

from glassgrad.base.config import NO_GRAD, TRAINING, Context


class NoGrad:
    """`with Tensor.no_grad():`, `@Tensor.no_grad()`, `Tensor.no_grad = True`: NO_GRAD is set."""

    def __call__(self) -> Context:
        return Context(NO_GRAD=1)

    def __bool__(self) -> bool:
        return bool(NO_GRAD.value)


class Modes(type):
    """The class of the Tensor class: its properties are Tensor's own attributes."""

    @property
    def training(cls) -> bool:
        """Whether dropout and batch norm work as in training; the setting TRAINING."""
        return bool(TRAINING.value)

    @training.setter
    def training(cls, mode: bool) -> None:
        TRAINING.value = int(mode)

    @property
    def no_grad(cls) -> NoGrad:
        """Whether results of operations are constants to `backward()`; the setting NO_GRAD."""
        return NoGrad()

    @no_grad.setter
    def no_grad(cls, mode: bool) -> None:
        NO_GRAD.value = int(bool(mode))
