"""Floats worth trying, and ways to try a function of uops on them."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.lower.math.transcendental import expand
from support.compiler.on_cpu import apply

WIDE = np.longdouble
NUMPY = {dtypes.float32: np.float32, dtypes.float64: np.float64}
both = pytest.mark.parametrize("dtype", list(NUMPY), ids=lambda dtype: dtype.name)
needs_wide = pytest.mark.skipif(
    np.finfo(WIDE).nmant <= 52, reason="no floats wider than 64 bits to compare with"
)


def run(op: Ops, *arrays: np.ndarray) -> np.ndarray:
    """The op's expansion on eight lanes."""
    dtype = dtypes.float32 if arrays[0].dtype == np.float32 else dtypes.float64

    def function(*x: UOp) -> UOp:
        return expand(UOp(op, dtype.vec(8), x))

    return apply(function, list(arrays), [dtype] * len(arrays), dtype)


def edges(kind: type) -> np.ndarray:
    """Zeros, infinities, nan, denormals and the largest of a NumPy float type."""
    of = np.finfo(kind)
    tiny = [of.tiny, of.smallest_subnormal, of.tiny / 2, of.max, 1, 0.5, 2, 3, 2.5, 1e30, np.inf, 0]
    return np.array([*tiny, *(-x for x in tiny), np.nan], kind)


def some(kind: type, low: float, high: float, count: int = 100_000) -> np.ndarray:
    values = np.random.default_rng(7).uniform(low, high, count).astype(kind)
    return np.concatenate([edges(kind), values])


def every_float(step: int) -> np.ndarray:
    """Every step-th float32 there is."""
    return np.arange(0, 1 << 32, step, dtype=np.uint32).view(np.float32)
