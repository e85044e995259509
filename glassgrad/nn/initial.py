"""a shape -> the numbers a layer begins with, spread as PyTorch spreads them."""

from __future__ import annotations

from math import sqrt

from glassgrad.tensor.tensor import Tensor


def uniform(*shape: int, fan_in: int) -> Tensor:
    """Uniform within 1 / sqrt(fan_in): as many inputs meet in one output.

    >>> uniform(2, 3, fan_in=3).shape
    (2, 3)
    """
    bound = 1 / sqrt(max(fan_in, 1))
    return Tensor.uniform(*shape, low=-bound, high=bound)


def state(value: float, *shape: int) -> Tensor:
    """A number everywhere, in memory that is kept with the model and written, but not trained."""
    import numpy as np

    array = np.full(shape, value, np.int64 if type(value) is int else np.float32)
    return Tensor(array, requires_grad=False).realize()
