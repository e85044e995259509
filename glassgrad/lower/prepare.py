"""Nest -> Nest of ops that machines have: polynomials, wide floats, division towards zero."""

from __future__ import annotations

from glassgrad.ir.algebra import ALGEBRA
from glassgrad.ir.ops import Ops
from glassgrad.ir.pattern import Rules
from glassgrad.ir.rewrite import rewrite
from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp
from glassgrad.lower.narrow import RULES, widen
from glassgrad.lower.transcendental import EXPANSIONS, expand

NARROW = Rules("narrow floats")
FUNCTIONS = Rules("functions")
DIVISION = Rules("floored division")


def prepare(body: UOp, target: Target) -> UOp:
    """What the machine lacks, made of what it has."""
    body = rewrite(body, ALGEBRA, name="simplify values")
    body = rewrite(body, NARROW, name="compute narrow floats in float32", ctx=target)
    body = rewrite(body, FUNCTIONS, name="expand functions", ctx=target)
    body = rewrite(body, DIVISION, name="divide with hardware division")
    return rewrite(body, ALGEBRA, name="simplify values again")


NARROW.rule(*RULES)(widen)


@FUNCTIONS.rule(*EXPANSIONS)
def expand_function(node: UOp, target: Target) -> UOp | None:
    """exp2(x)  ->  its polynomial, unless the machine has the function"""
    return None if node.op in target.native else expand(node)


@DIVISION.rule(Ops.FLOORDIV)
def divide(node: UOp) -> UOp:
    """x // y  ->  x / y rounded towards zero, one less where that rounded up"""
    x, y = node.src
    if _is_shift(x, y):
        return x >> _bits(y)
    quotient = x.alu(Ops.CDIV, y)
    if _same_sign(x, y):
        return quotient
    rest = x - quotient * y
    rounded_up = rest.ne(0) & ((rest < 0) ^ (y < 0))
    return quotient - rounded_up.cast(node.dtype)


@DIVISION.rule(Ops.FLOORMOD)
def remainder(node: UOp) -> UOp:
    """x % y  ->  the remainder of division towards zero, plus y where the signs differ"""
    x, y = node.src
    if _is_shift(x, y):
        return x & _mask(y)
    rest = x.alu(Ops.CMOD, y)
    if _same_sign(x, y):
        return rest
    wrong = rest.ne(0) & ((rest < 0) ^ (y < 0))
    return wrong.where(rest + y, rest)


def _is_shift(x: UOp, y: UOp) -> bool:
    return bool(y.is_const and y.arg > 0 and y.arg & (y.arg - 1) == 0 and x.dtype.kind != "bool")


def _bits(y: UOp) -> int:
    return int(y.arg).bit_length() - 1


def _mask(y: UOp) -> int:
    return int(y.arg) - 1


def _same_sign(x: UOp, y: UOp) -> bool:
    return x.dtype.kind in ("uint", "bool") or bool(x.vmin >= 0 and y.vmin >= 0)
