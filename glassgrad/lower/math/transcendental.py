"""EXP2, LOG2, SIN, POW, THREEFRY -> arithmetic that every lane of a vector can do by itself.

Largest errors, measured in tests/lower, in units of the last place:

            EXP2    exp     LOG2    SIN     POW
    float   1.0     1.25    1.0     1.6     0.51
    double  1.0     1.25    1.0     1.6     2.5

`exp` is how e^x arrives here: EXP2(x * log2(e)). Rounding that product would cost as many bits as
the result's exponent has, so the factor is seen and the reduction is done on x itself.
Infinities, nan, signed zeros and denormals go in and come out as the C library has them.
"""

from __future__ import annotations

from collections.abc import Callable

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.lower.math.exponential import exp2
from glassgrad.lower.math.logarithm import log2
from glassgrad.lower.math.power import power
from glassgrad.lower.math.sine import sin
from glassgrad.lower.math.threefry import threefry

FUNCTION_EXPANSIONS: dict[Ops, Callable[..., UOp]] = {
    Ops.EXP2: exp2,
    Ops.LOG2: log2,
    Ops.SIN: sin,
    Ops.POW: power,
    Ops.THREEFRY: threefry,
}


def expand(node: UOp) -> UOp:
    """The node in terms of arithmetic; its dtype is float or double (THREEFRY: ulong)."""
    return FUNCTION_EXPANSIONS[node.op](*node.src)
