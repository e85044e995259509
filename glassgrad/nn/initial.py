"""Initial values of parameters and buffers, distributed as in PyTorch."""

from __future__ import annotations

from math import sqrt

from glassgrad.tensor.tensor import Tensor


def uniform(*shape: int, fan_in: int) -> Tensor:
    """Uniform in ±1 / sqrt(fan_in), where fan_in is the number of inputs per output.

    >>> uniform(2, 3, fan_in=3).shape
    (2, 3)
    """
    bound = 1 / sqrt(max(fan_in, 1))
    return Tensor.uniform(*shape, low=-bound, high=bound)


def state(value: float, *shape: int) -> Tensor:
    """A buffer: a tensor filled with a value that is part of the state but not trained."""
    import numpy as np

    array = np.full(shape, value, np.int64 if type(value) is int else np.float32)
    return Tensor(array, requires_grad=False).realize()
