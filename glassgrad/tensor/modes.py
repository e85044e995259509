"""Modes: what scripts read and set on the class itself, Tensor.training and Tensor.no_grad."""

from __future__ import annotations

from contextlib import nullcontext

from glassgrad.base.config import TRAINING


class NoGrad:
    """`with Tensor.no_grad():` changes nothing: gradients are computed only where one asks."""

    def __call__(self) -> nullcontext[None]:
        return nullcontext()

    def __bool__(self) -> bool:
        return False


class Modes(type):
    """The class of the Tensor class: its properties are Tensor's own attributes."""

    @property
    def training(cls) -> bool:
        """Whether dropout and batch norm work as in training; the setting TRAINING."""
        return bool(TRAINING.value)

    @training.setter
    def training(cls, mode: bool) -> None:
        TRAINING.value = int(mode)
