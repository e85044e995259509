"""Layers: what holds parameters and is called with a tensor."""

from __future__ import annotations

from math import sqrt

from glassgrad.tensor.tensor import Tensor

__all__ = ["Linear"]


class Linear:
    """x @ weight.T + bias.

    >>> from glassgrad import Tensor
    >>> Linear(3, 4)(Tensor.ones(2, 3)).shape
    (2, 4)
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        bound = 1 / sqrt(max(in_features, 1))
        self.weight = Tensor.uniform(out_features, in_features, low=-bound, high=bound)
        self.bias = Tensor.uniform(out_features, low=-bound, high=bound) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        return x.linear(self.weight.transpose(), self.bias)
