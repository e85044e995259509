"""Programs of the sweep on random numbers, with every kernel compared with its plain loops."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import numpy as np

from glassgrad import Tensor
from glassgrad.base.config import Context
from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import CompilerWarning
from sweep.programs import FAMILIES, INPUTS

MAX_ELEMENTS = 300_000  # of all inputs: plain loops over more take seconds


class TooLarge(Exception):
    """A program has larger inputs than its plain loops should get."""


@contextmanager
def random_inputs(seed: int) -> Iterator[None]:
    """Inputs are random numbers: fractions of a normal distribution, or the integers 0 and 1, which
    are indices of every axis that is looked up.
    """
    rng = np.random.default_rng(seed)
    left = MAX_ELEMENTS

    def make(shape: tuple[int, ...], dtype: str) -> Tensor:
        nonlocal left
        left -= int(np.prod(shape))
        if left < 0:
            raise TooLarge
        if dtypes.named(dtype).kind == "float":
            return Tensor(rng.standard_normal(shape).astype(np.float32)).cast(dtype)
        return Tensor(rng.integers(0, 2, shape).astype(np.int32)).cast(dtype)

    INPUTS.append(make)
    try:
        yield
    finally:
        INPUTS.pop()


def run_for_real(family: str, seed: int) -> str | None:
    """Run a program and compare its kernels; the failure, if any. Raises TooLarge."""
    with random_inputs(seed), warnings.catch_warnings(), Context(VERIFY=1, POISON=1, SPEC=1):
        warnings.simplefilter("error", CompilerWarning)
        try:
            Tensor.manual_seed(1)
            FAMILIES[family](Random(f"{family} {seed}"))
        except TooLarge:
            raise
        except Exception:  # noqa: BLE001 - every error is reported
            return traceback.format_exc()
    return None
