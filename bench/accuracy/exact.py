"""Reference functions in long double, which has 11 bits more than float64.

The formulas avoid cancellation, so that their rounding errors are far below an ulp of float64.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray
LONG = np.longdouble
HAS_LONG = np.finfo(LONG).nmant >= 63
GELU_SCALE, GELU_CUBIC = np.sqrt(LONG(8) / np.arccos(LONG(-1))), LONG("0.044715")
SELU_ALPHA = LONG(1.6732632423543772848170429916717)
SELU_SCALE = LONG(1.0507009873554804934193349852946)


def erf(x: Array) -> Array:
    """2/√π · exp(-x²) · Σ 2ⁿ x²ⁿ⁺¹ / (2n+1)!!, all terms of one sign."""
    clipped = np.nan_to_num(np.clip(x, LONG(-7), LONG(7)))  # erf is 1 beyond
    term = total = clipped
    for n in range(1, 300):
        term = term * (2 * clipped * clipped) / (2 * n + 1)
        total = total + term
        if (np.abs(term) <= np.abs(total) * 2.0**-70).all():
            break
    result = total * np.exp(-clipped * clipped) * 2 / np.sqrt(np.arccos(LONG(-1)))
    return np.where(np.isnan(x), x, result)


def erfc(x: Array) -> Array:
    """1 - erf(x); from 2 on by a continued fraction, where the difference would cancel."""
    large = np.maximum(x, LONG(2))
    fraction = large
    for n in range(400, 0, -1):
        fraction = large + LONG(n) / 2 / fraction
    tail = np.exp(-large * large) / fraction / np.sqrt(np.arccos(LONG(-1)))
    return np.where(x > 2, tail, 1 - erf(np.minimum(x, LONG(2))))


def sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def softplus(x: Array) -> Array:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def gated(x: Array, argument: Array) -> Array:
    """x · sigmoid(argument), which at -inf is nan."""
    return x * sigmoid(argument)


def silu(x: Array) -> Array:
    return gated(x, x)


def quick_gelu(x: Array) -> Array:
    return gated(x, x * LONG("1.702"))


def gelu_tanh(x: Array) -> Array:
    return gated(x, x * (1 + GELU_CUBIC * x * x) * GELU_SCALE)


def gelu(x: Array) -> Array:
    return x * (erfc(-x / np.sqrt(LONG(2))) / 2)


def mish(x: Array) -> Array:
    """x · tanh(softplus(x)), where tanh(log(1 + e)) is e·(e + 2) / (e·(e + 2) + 2)."""
    e = np.exp(-np.abs(x))
    negative = e * (e + 2) / (e * (e + 2) + 2)
    positive = (1 + 2 * e) / (1 + 2 * e + 2 * e * e)
    return x * np.where(x < 0, negative, positive)


def elu(x: Array) -> Array:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def selu(x: Array) -> Array:
    return SELU_SCALE * np.where(x > 0, x, SELU_ALPHA * np.expm1(np.minimum(x, 0)))


def rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


def logsigmoid(x: Array) -> Array:
    return -softplus(-x)


def softsign(x: Array) -> Array:
    return x / (1 + np.abs(x))
