"""Nest -> Nest of ops that machines have: polynomials, wide floats, division towards zero."""

from __future__ import annotations

from glassgrad.base.dtype import dtypes
from glassgrad.ir.algebra import ALGEBRA
from glassgrad.ir.ops import Ops
from glassgrad.ir.pattern import Rules
from glassgrad.ir.rewrite import rewrite
from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp
from glassgrad.lower.math.division import hardware_division
from glassgrad.lower.math.low_precision import LOW_PRECISION_RULES, emulate
from glassgrad.lower.math.sine import cosine_argument, cosine_by_halves
from glassgrad.lower.math.transcendental import FUNCTION_EXPANSIONS, expand

LOW_PRECISION = Rules("narrow floats")
FUNCTIONS = Rules("functions")
DIVISION = Rules("floored division")


def legalize(body: UOp, target: Target) -> UOp:
    """What the machine lacks, made of what it has."""
    body = rewrite(body, ALGEBRA, name="simplify values")
    body = rewrite(body, LOW_PRECISION, name="compute narrow floats in float32", ctx=target)
    body = rewrite(body, FUNCTIONS, name="expand functions", ctx=target)
    body = rewrite(body, DIVISION, name="divide with hardware division")
    return rewrite(body, ALGEBRA, name="simplify values again")


LOW_PRECISION.rule(*LOW_PRECISION_RULES)(emulate)


@FUNCTIONS.rule(*FUNCTION_EXPANSIONS)
def expand_function(node: UOp, target: Target) -> UOp | None:
    """exp2(x)  ->  its polynomial, unless the machine has the function

    A machine's sine would see the rounded sum of sin(x + π/2), which is a cosine.
    """
    is_cosine = node.op is Ops.SIN and cosine_argument(node.src[0])[1] == 1
    if is_cosine and dtypes.float64 not in target.dtypes:
        return cosine_by_halves(node)
    return None if node.op in target.native and not is_cosine else expand(node)


@DIVISION.rule(Ops.FLOORDIV, Ops.FLOORMOD)
def divide_values(node: UOp) -> UOp | None:
    """x // y  ->  division towards zero, corrected

    Quotients of indices stay: whole addresses are simplified before they are computed.
    """
    return None if node.dtype.kind == "index" else hardware_division(node)
