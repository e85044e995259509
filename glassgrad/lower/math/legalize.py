"""Rules that legalize: an op that the target lacks -> polynomials, float32, truncating division."""

from __future__ import annotations

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.pattern import Rules
from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp
from glassgrad.lower.math.division import hardware_division
from glassgrad.lower.math.low_precision import LOW_PRECISION_RULES, emulate
from glassgrad.lower.math.sine import cosine_argument, cosine_by_halves
from glassgrad.lower.math.transcendental import FUNCTION_EXPANSIONS, expand

LOW_PRECISION = Rules("emulate low precision")
FUNCTIONS = Rules("expand functions")
DIVISION = Rules("expand floored division")

LOW_PRECISION.rule(*LOW_PRECISION_RULES)(emulate)


@FUNCTIONS.rule(*FUNCTION_EXPANSIONS)
def expand_function(node: UOp, target: Target) -> UOp | None:
    """exp2(x)  ->  its polynomial, unless the target has the function

    The native sine would round the argument of sin(x + π/2), which is a cosine.
    """
    is_cosine = node.op is Ops.SIN and cosine_argument(node.src[0])[1] == 1
    if is_cosine and dtypes.float64 not in target.dtypes:
        return cosine_by_halves(node)
    return None if node.op in target.native and not is_cosine else expand(node)


@DIVISION.rule(Ops.FLOORDIV, Ops.FLOORMOD)
def divide_values(node: UOp) -> UOp | None:
    """x // y  ->  truncating division, corrected

    Index divisions stay: emit simplifies whole addresses first.
    """
    return None if node.dtype.kind == "index" else hardware_division(node)
