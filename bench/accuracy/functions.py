"""Every function of one float -> the exact one, where it is sampled, and the bound that we state."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bench.accuracy import exact
from glassgrad import Tensor
from glassgrad.base.records import frozen

Exact = Callable[[np.ndarray], np.ndarray]


@frozen
class Function:
    """A method of Tensor, its exact values, and its bounds in ulp: float32, float64.

    Results smaller than `least` are measured in ulp of `least`: where a function ends in a long
    tail, as exp(-x²), each rounding of the exponent moves the tail by many of its own ulp.
    """

    name: str
    ours: Callable[[Tensor], Tensor]
    exact: Exact
    float32: float
    float64: float
    least: float = 0.0


def method(
    name: str, exact_one: Exact, float32: float, float64: float, least: float = 0.0
) -> Function:
    return Function(name, lambda x: getattr(x, name)(), exact_one, float32, float64, least)


DIP = 0.125  # about how far gelu goes below 0


FUNCTIONS = (
    method("exp", np.exp, 1.5, 1.5),
    method("exp2", np.exp2, 1.5, 1.5),
    method("log", np.log, 1.5, 1.5),
    method("log2", np.log2, 1.5, 1.5),
    method("log10", np.log10, 2, 2),
    method("sin", np.sin, 2, 2),
    method("cos", np.cos, 2, 2),
    method("tan", np.tan, 4, 4),
    method("asin", np.arcsin, 4, 4),
    method("acos", np.arccos, 4, 4),
    method("atan", np.arctan, 4, 4),
    method("sinh", np.sinh, 4, 4),
    method("cosh", np.cosh, 4, 4),
    method("tanh", np.tanh, 4, 4),
    method("asinh", np.arcsinh, 4, 4),
    method("acosh", np.arccosh, 4, 4),
    method("atanh", np.arctanh, 4, 4),
    method("sqrt", np.sqrt, 0.5, 0.5),
    method("rsqrt", exact.rsqrt, 2, 2),
    method("reciprocal", lambda x: 1 / x, 0.5, 0.5),
    method("square", np.square, 0.5, 0.5),
    method("erf", exact.erf, 4, 4),
    method("sigmoid", exact.sigmoid, 4, 4),
    method("logsigmoid", exact.logsigmoid, 4, 4),
    method("softplus", exact.softplus, 4, 4),
    method("silu", exact.silu, 4, 4),
    method("mish", exact.mish, 4, 4),
    method("gelu", exact.gelu_tanh, 4, 4, DIP),
    Function('gelu("none")', lambda x: x.gelu("none"), exact.gelu, 4, 4, DIP),
    method("quick_gelu", exact.quick_gelu, 4, 4, DIP),
    method("elu", exact.elu, 4, 4),
    method("celu", exact.elu, 4, 4),
    method("selu", exact.selu, 4, 4),
    method("softsign", exact.softsign, 4, 4),
)
