"""Power series near 0, where 1 + x would lose the digits of x."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from glassgrad.base.dtype import dtypes
from glassgrad.tensor.core import TensorCore

EXP_LIMIT = {dtypes.float32: 88.0, dtypes.float64: 709.0}  # up to here the exponential is finite
TERMS = {dtypes.float32: 8, dtypes.float64: 17}  # each is at most 1/9 of the one before
Coefficient = Callable[[int], float]
T = TypeVar("T", bound=TensorCore)


def polynomial(x: T, coefficients: tuple[float, ...]) -> T:
    """A polynomial by Horner's rule, highest power first."""
    total = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        total = total * x + coefficient
    return total


def odd(x: T, coefficient: Coefficient) -> T:
    """x (coefficient(0) + coefficient(1) x² + coefficient(2) x⁴ + …)"""
    count = TERMS[x.uop.dtype]
    return x * polynomial(x * x, tuple(coefficient(k) for k in reversed(range(count))))


def of_atanh(k: int) -> float:
    return 1 / (2 * k + 1)


def of_sinh(k: int) -> float:
    return 1 / math.factorial(2 * k + 1)


def log1p(x: T) -> T:
    """log(1 + x) for 0 <= x <= 1: 2 atanh(z) with z = x / (x + 2), which is at most 1/3."""
    return odd(x / (x + 2.0), of_atanh) * 2.0


def sinh(x: T) -> T:
    """(exp(x) - exp(-x)) / 2, and the power series near 0, where that cancels."""
    near = odd(x.clamp(-1.0, 1.0), of_sinh)
    is_negative = x < 0
    half = _half_exp(is_negative.where(-x, x))
    far = half - 0.25 / half
    return ((x > -1.0) & (x < 1.0)).where(near, is_negative.where(-far, far))


def cosh(x: T) -> T:
    """(exp(x) + exp(-x)) / 2"""
    half = _half_exp((x < 0).where(-x, x))
    return half + 0.25 / half


def _half_exp(x: T) -> T:
    """exp(x) / 2 for x >= 0: finite where exp(x) overflows.

    x - limit is exact up to twice the limit, and 0 below it, where its exponential is 1.
    """
    limit = EXP_LIMIT[x.uop.dtype]
    head = x.clamp(max_=limit)
    return (head.exp() * 0.5) * (x - head).exp()


def expm1(x: T) -> T:
    """exp(x) - 1 for x <= 0; near 0 it is 2 sinh(x/2) exp(x/2)."""
    half = (x * 0.5).maximum(-1.0)
    near = odd(half, of_sinh) * half.exp() * 2.0
    return (x > -1.0).where(near, x.exp() - 1.0)
