"""RMSprop against PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glassgrad import Tensor
from glassgrad.nn.optim import RMSprop


@pytest.mark.parametrize(
    "options",
    [{}, {"momentum": 0.9, "weight_decay": 0.1}, {"centered": True}, {"alpha": 0.9, "eps": 1e-3}],
    ids=str,
)
def test_100_steps_of_rmsprop_equal_pytorch(options: dict[str, Any]) -> None:
    from support.references.torch_training import check_training, torch

    check_training(
        lambda p: torch.optim.RMSprop(p, lr=0.003, **options),
        lambda p: RMSprop(p, lr=0.003, **options),
        tolerance=1e-4 if "centered" in options else 2e-5,
    )


def test_rmsprop_is_its_definition() -> None:
    random = np.random.default_rng(0)
    w = random.standard_normal(5)
    square, mean, velocity = np.zeros(5), np.zeros(5), np.zeros(5)
    param = Tensor(w.copy())
    optimizer = RMSprop([param], 0.25, momentum=0.5, weight_decay=0.1, centered=True)
    for _ in range(20):
        g = random.standard_normal(5)
        param.grad = Tensor(g)
        optimizer.step()
        g = g + 0.1 * w
        square, mean = 0.99 * square + 0.01 * g * g, 0.99 * mean + 0.01 * g
        velocity = 0.5 * velocity + g / (np.sqrt(square - mean**2) + 1e-8)
        w = w - 0.25 * velocity
    np.testing.assert_allclose(param.numpy(), w, rtol=1e-9)
