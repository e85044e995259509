"""EXP2 -> a polynomial times a power of two; exp(x) is recognised and reduced without rounding."""

from __future__ import annotations

import math
import struct

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.lower.math.float_layout import LOG2_E, FloatLayout, bits_of, layout_of, upper_part
from glassgrad.lower.math.polynomial import multiply_add, polynomial

LN_2 = "0.693147180559945309417232121458176568075500134360255254120680009493"
EXPONENT_BITS = 11

# (2^f - 1)/f for |f| ≤ 1/2
EXP2 = {
    dtypes.float32: (
        0.6931472076754622, 0.24022650729411182, 0.05550325179668875, 0.00961809732116655,
        0.0013401236549721528, 0.00015445385338942288,
    ),
    dtypes.float64: (
        0.6931471805599453, 0.24022650695910097, 0.0555041086648216, 0.009618129107606888,
        0.0013333558146416936, 0.0001540353044173605, 1.525273382983612e-05,
        1.321544258792169e-06, 1.0178062445845774e-07, 7.072585949269223e-09,
        4.4549605981865186e-10,
    ),
}  # fmt: skip


def exp2(x: UOp) -> UOp:
    """2^x = 2^n · 2^f with n the nearest integer: exponent bits times a polynomial."""
    if (scaled := times_log2_e(x)) is not None:
        return _exp2_scaled(*scaled)
    layout = layout_of(x)
    x = x.maximum(layout.min_exponent).minimum(layout.max_exponent)
    shifted = x + layout.rounder
    return scale_by(exp2_near_zero(x - (shifted - layout.rounder)), shifted, layout)


def times_log2_e(x: UOp) -> tuple[UOp, float] | None:
    """(y, k) if x is y·k·log2(e) for a short number k such as 1, -1 or 2."""
    if x.op is not Ops.MUL:
        return None
    y, factor = x.src if x.src[1].is_const else (x.src[1], x.src[0])
    if not factor.is_const or not 2**-10 < abs(factor.arg) < 2**10:
        return None
    multiple = upper_part(factor.arg / LOG2_E * (1 + 2**-20), 8)
    is_multiple = _same_number(multiple * LOG2_E, factor.arg, x.dtype)
    return (y, multiple) if is_multiple else None


def _same_number(one: float, other: float, dtype: DType) -> bool:
    """True if two numbers are equal in a dtype, or differ by less than an ulp of float64."""
    letter = "f" if dtype.bits == 32 else "d"
    return struct.pack(letter, one) == struct.pack(letter, other) or math.isclose(
        one, other, rel_tol=2**-51
    )


def _exp2_scaled(x: UOp, multiple: float) -> UOp:
    """e^(x·k) = 2^(x·k·log2 e): the nearest n to that, and x - n·ln2/k in two exact steps."""
    from fractions import Fraction  # importing it takes 4 ms

    layout, factor, exact = layout_of(x), multiple * LOG2_E, Fraction(LN_2) / Fraction(multiple)
    least, most = sorted((layout.min_exponent / factor, layout.max_exponent / factor))
    x = x.maximum(least).minimum(most)
    shifted = multiply_add(x, x.const_like(factor), x.const_like(layout.rounder))
    n = shifted - layout.rounder
    step = upper_part(float(exact), layout.mantissa - EXPONENT_BITS)  # so that n·step is exact
    rest = multiply_add(n, x.const_like(-step), x)
    rest = multiply_add(n, x.const_like(float(Fraction(step) - exact)), rest)
    scaled = tuple(c * factor ** (i + 1) for i, c in enumerate(EXP2[x.dtype.scalar]))
    return scale_by(exp2_near_zero(rest, scaled), shifted, layout)


def exp2_near_zero(f: UOp, coefficients: tuple[float, ...] = ()) -> UOp:
    """2^f for |f| ≤ 1/2, or another polynomial of that form."""
    value = polynomial(f, coefficients or EXP2[f.dtype.scalar])
    return multiply_add(value, f, f.const_like(1.0))


def scale_by(value: UOp, shifted: UOp, layout: FloatLayout) -> UOp:
    """value · 2^n in two factors, so that neither overflows and denormals are rounded once.

    The low bits of `shifted` are n; the bits above are shifted out.
    """
    bits = bits_of(shifted)
    half = bits >> 1
    for part in (half, bits - half):
        power = (part << layout.mantissa) + (layout.bias << layout.mantissa)
        value = value * power.bitcast(value.dtype)
    return value
