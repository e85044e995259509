"""The metaclass of Tensor: Tensor.training and Tensor.no_grad, settings as class attributes."""

from __future__ import annotations

from glassgrad.base.config import NO_GRAD, TRAINING, Context


class NoGrad:
    """`with Tensor.no_grad():`, `@Tensor.no_grad()` and `Tensor.no_grad = True`: the setting
    NO_GRAD.
    """

    def __call__(self) -> Context:
        return Context(NO_GRAD=1)

    def __bool__(self) -> bool:
        return bool(NO_GRAD.value)


class Modes(type):
    """The metaclass of Tensor, whose properties are attributes of the class itself."""

    @property
    def training(cls) -> bool:
        """True if dropout and batch norm work as in training: the setting TRAINING."""
        return bool(TRAINING.value)

    @training.setter
    def training(cls, mode: bool) -> None:
        TRAINING.value = int(mode)

    @property
    def no_grad(cls) -> NoGrad:
        """True if results of operations are constants to `backward()`: the setting NO_GRAD."""
        return NoGrad()

    @no_grad.setter
    def no_grad(cls, mode: bool) -> None:
        NO_GRAD.value = int(bool(mode))
