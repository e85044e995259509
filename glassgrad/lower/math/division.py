"""Floored division -> truncating division, shifts and masks."""

from __future__ import annotations

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp


def divide(node: UOp) -> UOp:
    """x // y -> x / y truncated, minus one where truncation rounded up"""
    x, y = node.src
    if _is_shift(x, y):
        return x >> _bits(y)
    quotient = x.alu(Ops.CDIV, y)
    if _have_same_sign(x, y):
        return quotient
    rest = x - quotient * y
    rounded_up = rest.ne(0) & ((rest < 0) ^ (y < 0))
    if y.vmin <= 0 <= y.vmax:  # x // 0 is 0, as in NumPy
        rounded_up = rounded_up & y.ne(0)
    return quotient - rounded_up.cast(node.dtype)


def remainder(node: UOp) -> UOp:
    """x % y -> the truncating remainder, plus y where the signs differ"""
    x, y = node.src
    if _is_shift(x, y):
        return x & _mask(y)
    rest = x.alu(Ops.CMOD, y)
    if _have_same_sign(x, y):
        return rest
    wrong = rest.ne(0) & ((rest < 0) ^ (y < 0))
    return wrong.where(rest + y, rest)


def _is_shift(x: UOp, y: UOp) -> bool:
    return bool(y.is_const and y.arg > 0 and y.arg & (y.arg - 1) == 0 and x.dtype.kind != "bool")


def _bits(y: UOp) -> int:
    return int(y.arg).bit_length() - 1


def _mask(y: UOp) -> int:
    return int(y.arg) - 1


def _have_same_sign(x: UOp, y: UOp) -> bool:
    return x.dtype.kind in ("uint", "bool") or bool(x.vmin >= 0 and y.vmin >= 0)


def hardware_division(node: UOp) -> UOp:
    return divide(node) if node.op is Ops.FLOORDIV else remainder(node)
