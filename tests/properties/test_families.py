"""Families of operations on odd shapes and 1, 2 and 5 threads: accuracy bounds and determinism.

HYPOTHESIS_PROFILE=random tests a hundred shapes for each family and number of threads.
"""

from __future__ import annotations

import os
from random import Random

import numpy as np
import pytest
from support.random.families import FAMILIES

from glassgrad import Tensor
from glassgrad.base.config import Context
from glassgrad.devices.registry import Device

COUNT = 100 if os.environ.get("HYPOTHESIS_PROFILE") == "random" else 8  # shapes


def device_with(threads: int) -> str:
    """A new CPU device: THREADS is read when a device is opened."""
    name = f"CPU:{100 + threads}"
    with Context(THREADS=threads):
        assert Device[name].target.cores == threads
    return name


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("family", FAMILIES)
def test_results_are_accurate_and_deterministic(family: str, threads: int) -> None:
    device = device_with(threads)
    for seed in range(COUNT):
        case = FAMILIES[family](Random(f"{family} {threads} {seed}"))
        inputs = [Tensor(array, device=device).realize() for array in case.inputs]
        found = case.compute(*inputs).numpy()
        assert found.shape == case.want.shape
        error = np.abs(found.astype(np.float64) - case.want)
        assert (error <= case.bound).all(), f"seed {seed}: error {error.max()}"
        second = case.compute(*inputs).numpy()
        assert second.tobytes() == found.tobytes(), f"seed {seed}"
