"""LOG2 -> the exponent plus a polynomial of the mantissa."""

from __future__ import annotations

import math

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.lower.math.float_layout import (
    LOG2_E,
    bits_of,
    layout_of,
    small_int_to_float,
    upper_half,
    upper_part,
)
from glassgrad.lower.math.polynomial import multiply_add, polynomial

# (log2(1+r) - r·log2(e)) / r² for √½ - 1 ≤ r ≤ √2 - 1
LOG2_FLOAT = (
    -0.7213473270267826, 0.4808982857544947, -0.36069919557948454, 0.288563067744165,
    -0.23954605441411106, 0.20469038288331295, -0.1918201485632985, 0.18567012279774794,
    -0.10716149959820473,
)  # fmt: skip
# (log(1+r) - 2s) / s³ in s², with s = r/(2+r)
LOG_DOUBLE = (
    0.6666666666666666, 0.4000000000000624, 0.28571428569087265, 0.222222226465782,
    0.18181775683600293, 0.15387089946336802, 0.13250136789435274, 0.1325115671277114,
)  # fmt: skip
SQRT_HALF_BITS = {dtypes.float32: 0x3F3504F3, dtypes.float64: 0x3FE6A09E667F3BCD}


def log2(x: UOp) -> UOp:
    """log2(m · 2^e) = e + log2(m), with m between √½ and √2."""
    exponent, rest = split_float(x)
    of_mantissa = _log2_float if x.dtype.bits == 32 else _log2_double
    return log2_edges(x, of_mantissa(exponent, rest))


def split_float(x: UOp) -> tuple[UOp, UOp]:
    """(e, m - 1) of x = m · 2^e with √½ ≤ m < √2, both as floats; x is positive and finite."""
    layout = layout_of(x)
    lift = layout.mantissa + 1
    is_denormal = x < layout.smallest_normal
    lifted = is_denormal.where(x * 2.0**lift, x)
    bits = bits_of(lifted)
    exponent = (bits - SQRT_HALF_BITS[x.dtype.scalar]) >> layout.mantissa
    mantissa = (bits - (exponent << layout.mantissa)).bitcast(x.dtype)
    lowered = is_denormal.where(exponent - lift, exponent)
    return small_int_to_float(lowered, x.dtype), mantissa - 1.0


def _log2_float(exponent: UOp, r: UOp) -> UOp:
    head = upper_part(LOG2_E, 24)
    low = multiply_add(r * r, polynomial(r, LOG2_FLOAT), r * (LOG2_E - head))
    return exponent + multiply_add(r, r.const_like(head), low)


def _log2_double(exponent: UOp, r: UOp) -> UOp:
    """e + log2(1+r), small terms summed before large ones.

    log(1+r) = r - (r²/2 - s·(r²/2 + R)), with s = r/(2+r) and R = s²·polynomial(s²). The head of
    that sum is kept to 20 bits, so that its product with log2(e) is exact.
    """
    s = r.alu(Ops.FDIV, r + 2.0)
    z = s * s
    half_square = r * r * 0.5
    head = upper_half(r - half_square)
    tail = (r - head - half_square) + s * (half_square + z * polynomial(z, LOG_DOUBLE))
    factor = upper_part(LOG2_E, 30)
    high = head * factor
    low = multiply_add(tail, r.const_like(LOG2_E), head * (LOG2_E - factor))
    whole = exponent + high
    return whole + (((exponent - whole) + high) + low)


def log2_edges(x: UOp, found: UOp) -> UOp:
    """log2 of inf is inf, of 0 is -inf, of negative numbers and nan is nan."""
    positive = (x < math.inf).where(found, x)
    others = x.eq(0.0).where(x.const_like(-math.inf), x.const_like(math.nan))
    return (x.const_like(0.0) < x).where(positive, others)
