"""Families of work on odd shapes: within stated bounds, on 1, 2 and 5 threads, bit by bit again.

HYPOTHESIS_PROFILE=random looks at a hundred shapes for each family and number of threads.
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

MANY = os.environ.get("HYPOTHESIS_PROFILE") == "random"
COUNT = 100 if MANY else 8


def device_with(threads: int) -> str:
    """A CPU device of its own: THREADS are read when it is opened."""
    name = f"CPU:{100 + threads}"
    with Context(THREADS=threads):
        assert Device[name].target.cores == threads
    return name


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("family", FAMILIES)
def test_results_are_within_bounds_and_the_same_bits_again(family: str, threads: int) -> None:
    device = device_with(threads)
    for seed in range(COUNT):
        case = FAMILIES[family](Random(f"{family} {threads} {seed}"))
        inputs = [Tensor(array, device=device).realize() for array in case.inputs]
        found = case.compute(*inputs).numpy()
        assert found.shape == case.want.shape
        off = np.abs(found.astype(np.float64) - case.want)
        assert (off <= case.bound).all(), f"seed {seed}: {off.max()} off"
        again = case.compute(*inputs).numpy()
        assert again.tobytes() == found.tobytes(), f"seed {seed}"
