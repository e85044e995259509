"""Gradients against central differences in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from glassgrad import Tensor
from support.references.graph import evaluate

Function = Callable[..., Tensor]


def weighted(value: Tensor) -> Tensor:
    """A scalar whose derivative differs between elements."""
    weights = np.random.default_rng(1).normal(size=value.shape)
    return (value * Tensor(weights)).sum()


def finite_differences(function: Function, arrays: list[np.ndarray], which: int) -> np.ndarray:
    """Central differences of weighted(function(...)) for one of its arguments."""
    result = np.zeros_like(arrays[which])
    for index in np.ndindex(*result.shape):
        values = []
        for sign in (1, -1):
            moved = [array.copy() for array in arrays]
            moved[which][index] += sign * 1e-6
            values.append(float(evaluate(weighted(function(*map(Tensor, moved))).uop)))
        result[index] = (values[0] - values[1]) / 2e-6
    return result


def check(function: Function, *arrays: np.ndarray, second: bool = False) -> None:
    """Check the gradient of every argument; with `second`, also the gradients of the gradients."""
    inputs = [Tensor(array) for array in arrays]
    found = weighted(function(*inputs)).gradient(*inputs)
    for which, gradient in enumerate(found):
        wanted = finite_differences(function, list(arrays), which)
        assert gradient.shape == wanted.shape
        np.testing.assert_allclose(gradient.numpy(), wanted, rtol=1e-5, atol=1e-6)
    if second:
        for which in range(len(arrays)):
            check(lambda *xs, i=which: weighted(function(*xs)).gradient(xs[i])[0], *arrays)
