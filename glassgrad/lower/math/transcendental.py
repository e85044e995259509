"""EXP2, LOG2, SIN, POW, THREEFRY -> elementwise arithmetic, which vectorizes.

Largest errors, measured in tests/lower, in units of the last place:

            EXP2    exp     LOG2    SIN     POW
    float   1.0     1.25    1.0     1.6     0.51
    double  1.0     1.25    1.0     1.6     2.5

exp(x) arrives here as EXP2(x * log2(e)). Rounding that product would lose as many bits as the
exponent of the result has, so the factor is recognised and the reduction works on x itself.
Infinities, nan, signed zeros and denormals behave as in the C library.
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
