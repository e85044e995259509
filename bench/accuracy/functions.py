"""Unary functions: the method of Tensor, a reference, and the stated bounds of the error."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bench.accuracy import exact
from glassgrad import Tensor
from glassgrad.base.fast_dataclasses import frozen

Exact = Callable[[np.ndarray], np.ndarray]


@frozen
class Function:
    """A method of Tensor, its reference, and its error bounds in ulp for float32 and float64.

    Errors of results smaller than `ulp_floor` are measured in ulp of `ulp_floor`: in the tail of a
    function such as exp(-x²), one rounding of the exponent changes the result by many ulp.
    """

    name: str
    ours: Callable[[Tensor], Tensor]
    exact: Exact
    float32: float
    float64: float
    ulp_floor: float = 0.0


def method(
    name: str, reference: Exact, float32: float, float64: float, ulp_floor: float = 0.0
) -> Function:
    return Function(name, lambda x: getattr(x, name)(), reference, float32, float64, ulp_floor)


def _power(exponent: float) -> Exact:
    return lambda x: np.power(x, np.longdouble(exponent))


GELU_DEPTH = 0.125  # about -min(gelu(x))

FUNCTIONS = (
    method("exp", np.exp, 1.25, 1),
    method("exp2", np.exp2, 1, 1),
    method("log", np.log, 1.75, 1.75),
    method("log2", np.log2, 1, 1),
    method("log10", np.log10, 2.5, 1.5),
    Function("pow(1.625)", lambda x: x ** x.full_like(1.625), _power(1.625), 1, 3),
    Function("pow(-2.5)", lambda x: x ** x.full_like(-2.5), _power(-2.5), 1, 3),
    method("sqrt", np.sqrt, 0.5, 0.5),
    method("rsqrt", exact.rsqrt, 1.5, 1.5),
    method("reciprocal", lambda x: 1 / x, 0.5, 0.5),
    method("square", np.square, 0.5, 0.5),
    method("sin", np.sin, 1.75, 1.75),
    method("cos", np.cos, 1.75, 1.75),
    method("tan", np.tan, 4, 4),
    method("asin", np.arcsin, 3.5, 4),
    method("acos", np.arccos, 3.5, 4),
    method("atan", np.arctan, 3, 3.5),
    method("sinh", np.sinh, 2, 2),
    method("cosh", np.cosh, 2, 2),
    method("tanh", np.tanh, 3, 3.5),
    method("asinh", np.arcsinh, 5, 5),
    method("acosh", np.arccosh, 5.5, 5),
    method("atanh", np.arctanh, 4, 4),
    method("erf", exact.erf, 3, 2.5),
    method("sigmoid", exact.sigmoid, 3, 3),
    method("logsigmoid", exact.logsigmoid, 4, 4),
    method("softplus", exact.softplus, 4, 4),
    method("silu", exact.silu, 4, 4),
    method("mish", exact.mish, 5, 5),
    method("gelu", exact.gelu_tanh, 5, 5, GELU_DEPTH),
    Function('gelu("none")', lambda x: x.gelu("none"), exact.gelu, 8, 10, GELU_DEPTH),
    method("quick_gelu", exact.quick_gelu, 3, 3, GELU_DEPTH),
    method("elu", exact.elu, 3, 3),
    method("celu", exact.elu, 3, 3),
    method("selu", exact.selu, 4, 4),
    method("softsign", exact.softsign, 1.5, 1.5),
)
NARROW_BOUND = 0.501  # ulp of float16 and bfloat16: the float32 result is rounded once
