"""Float32 reductions of 10^3 to 10^9 elements: their errors, and the stated bound.

Long inputs repeat a block of a million elements, so that a billion of them need little memory.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from glassgrad import Tensor
from glassgrad.base.fast_dataclasses import frozen

# Relative to the sum of the absolute terms: 2048 additions to an accumulator and 2048 that combine
# accumulators, each with a relative error of 2^-24.
BOUND = 4096 * 2.0**-24
LENGTHS = (10**3, 10**4, 10**5, 10**6, 10**7, 10**8, 10**9)
BLOCK = 10**6


@frozen
class Sum:
    """A reduction, and its error relative to the sum of its absolute terms."""

    name: str
    error: Callable[[int, str], float]  # (number of elements, key of KINDS) -> error
    max_count: int = LENGTHS[-1]  # where the input cannot be a repeated block, memory limits it


KINDS: dict[str, Callable[[int], np.ndarray]] = {
    "uniform": lambda n: np.random.default_rng(n).random(n, dtype=np.float32),
    "normal": lambda n: np.random.default_rng(n).standard_normal(n, dtype=np.float32),
    "0.1": lambda n: np.full(n, 0.1, np.float32),  # all rounding errors have the same sign
}


def _block(count: int, kind: str) -> tuple[np.ndarray, Tensor, int]:
    """A block of elements, a tensor that repeats it, and the number of repetitions."""
    block = KINDS[kind](min(count, BLOCK))
    times = count // len(block)
    repeated = Tensor(block).realize().reshape(1, -1).expand(times, len(block))
    return block.astype(np.longdouble), repeated, times


def _relative(got: float, expected: np.longdouble, size: np.longdouble) -> float:
    return float(abs(np.longdouble(got) - expected) / size)


def _sum(count: int, kind: str) -> float:
    x, ours, times = _block(count, kind)
    return _relative(ours.sum().item(), x.sum() * times, np.abs(x).sum() * times)


def _mean(count: int, kind: str) -> float:
    x, ours, _ = _block(count, kind)
    return _relative(ours.mean().item(), x.mean(), np.abs(x).mean())


def _dot(count: int, kind: str) -> float:
    x, ours, times = _block(count, kind)
    squares = (x * x).sum() * times
    return _relative((ours * ours).sum().item(), squares, squares)


def _norm(count: int, kind: str) -> float:
    x, ours, times = _block(count, kind)
    expected = np.sqrt((x * x).sum() * times)
    return _relative(ours.norm().item(), expected, expected)


def _variance(count: int, kind: str) -> float:
    """Of numbers around 100, whose squares would cancel; allows the squared error of the mean."""
    x = (KINDS[kind](count) + np.float32(100)).astype(np.float32)
    exact = x.astype(np.longdouble)
    expected = exact.var(ddof=1)
    return _relative(Tensor(x).var().item(), expected, expected + exact.mean() ** 2 * BOUND)


def _columns(count: int, kind: str) -> float:
    x = KINDS[kind](count // 16 * 16).reshape(-1, 16)
    exact = x.astype(np.longdouble)
    error = np.abs(Tensor(x).sum(0).numpy() - exact.sum(0)) / np.abs(exact).sum(0)
    return float(error.max())


def _product(count: int, kind: str) -> float:
    x = KINDS[kind](count // 4 * 4).reshape(4, -1)
    t, exact = Tensor(x).realize(), x.astype(np.longdouble)
    size = np.abs(exact) @ np.abs(exact).T
    return float((np.abs((t @ t.T).numpy() - exact @ exact.T) / size).max())


def _running(count: int, kind: str) -> float:
    x = KINDS[kind](count)
    exact = x.astype(np.longdouble)
    error = np.abs(Tensor(x).cumsum(0).numpy() - np.cumsum(exact)) / np.cumsum(np.abs(exact))
    return float(error.max())


SUMS = (
    Sum("sum", _sum),
    Sum("mean", _mean),
    Sum("sum of squares", _dot),
    Sum("norm", _norm),
    Sum("var of numbers around 100", _variance, 10**7),
    Sum("sum of 16 columns", _columns, 10**8),
    Sum("matrix product of 4 rows", _product, 10**8),
    Sum("cumsum", _running, 10**7),
)
