"""Activations against their formulas."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from arrays import same

from glassgrad import Tensor

REFERENCE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x < 0, 0.01 * x, x),
    "celu": lambda x: np.maximum(x, 0) + np.minimum(np.exp(x) - 1, 0),
    "selu": lambda x: 1.0507 * np.where(x > 0, x, 1.67326 * (np.exp(x) - 1)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "quick_gelu": lambda x: x / (1 + np.exp(-1.702 * x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "hardsigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hardtanh": lambda x: np.clip(x, -1, 1),
    "mish": lambda x: x * np.tanh(np.log(1 + np.exp(x))),
    "logsigmoid": lambda x: -np.log(1 + np.exp(-x)),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
}


@pytest.mark.parametrize("name", REFERENCE)
def test_activations_agree_with_their_formulas(name: str) -> None:
    x = np.linspace(-3.3, 3.1, 101)
    same(getattr(Tensor(x), name)(), REFERENCE[name](x), rtol=1e-9, atol=1e-12)
