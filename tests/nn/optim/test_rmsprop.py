"""RMSprop against PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

from glassgrad.nn.optim import RMSprop


@pytest.mark.parametrize(
    "options",
    [{}, {"momentum": 0.9, "weight_decay": 0.1}, {"centered": True}, {"alpha": 0.9, "eps": 1e-3}],
    ids=str,
)
def test_100_steps_of_rmsprop_are_pytorchs(options: dict[str, Any]) -> None:
    from torch_training import check_training, torch

    check_training(
        lambda p: torch.optim.RMSprop(p, lr=0.003, **options),
        lambda p: RMSprop(p, lr=0.003, **options),
        tolerance=1e-4 if "centered" in options else 2e-5,
    )
