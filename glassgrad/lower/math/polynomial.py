"""Coefficients -> a polynomial by Horner's rule, with fused multiply-adds where possible."""

from __future__ import annotations

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp

MULACC = Ops.MULACC


def multiply_add(x: UOp, y: UOp, z: UOp) -> UOp:
    return UOp(MULACC, x.dtype, (x, y, z))


def polynomial(x: UOp, coefficients: tuple[float, ...]) -> UOp:
    """c[0] + c[1] x + c[2] x² + …"""
    value = x.const_like(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = multiply_add(value, x, x.const_like(coefficient))
    return value
