"""POW -> 2^(y·log2|x|), with a logarithm of more digits than the result has."""

from __future__ import annotations

import math

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.lower.math.exponential import exp2, exp2_near_zero, scale_by
from glassgrad.lower.math.float_layout import FLOAT_LAYOUTS, LOG2_E, bits_of, upper_half
from glassgrad.lower.math.logarithm import log2, log2_edges, split_float
from glassgrad.lower.math.polynomial import multiply_add, polynomial


def power(x: UOp, y: UOp) -> UOp:
    """|x|^y = 2^(y·log2|x|), with the sign and special cases of the C library."""
    bits = bits_of(x)
    magnitude = (bits & dtypes.max(bits.dtype)).bitcast(x.dtype)
    found = _power_float(magnitude, y) if x.dtype.bits == 32 else _power_double(magnitude, y)
    is_whole = y.alu(Ops.TRUNC).eq(y)
    half = y * 0.5
    is_odd = is_whole & half.alu(Ops.TRUNC).ne(half)
    found = (is_odd & (bits < 0)).where(-found, found)
    has_no_root = (x < 0.0) & (x.const_like(-math.inf) < x) & is_whole.ne(True)
    found = has_no_root.where(x.const_like(math.nan), found)
    return (y.eq(0.0) | x.eq(1.0)).where(x.const_like(1.0), found)


def _power_float(magnitude: UOp, y: UOp) -> UOp:
    """Computing in float64 makes every step exact enough."""
    wide = dtypes.float64.vec(y.dtype.count)
    logarithm = log2(magnitude.cast(wide))
    product = logarithm.eq(0.0).where(logarithm, y.cast(wide) * logarithm)
    return exp2(product).cast(y.dtype)


def _power_double(magnitude: UOp, y: UOp) -> UOp:
    """y·log2(x) as a sum head + tail: 2^head, corrected by the tail."""
    head, tail = _log2_in_two(magnitude)
    rough = y * log2_edges(magnitude, head)
    product = y * head
    rest = multiply_add(y, tail, _product_error(y, head, product))
    layout = FLOAT_LAYOUTS[dtypes.float64]
    is_in_range = (rough < layout.max_exponent) & (rough.const_like(layout.min_exponent) < rough)
    safe = is_in_range.where(product, product.const_like(0.0))
    shifted = safe + layout.rounder
    fraction = (safe - (shifted - layout.rounder)) + is_in_range.where(rest, rest.const_like(0.0))
    in_range = scale_by(exp2_near_zero(fraction), shifted, layout)
    out_of_range = magnitude.eq(1.0).where(magnitude, exp2(rough))
    return is_in_range.where(in_range, out_of_range)


def _product_error(x: UOp, y: UOp, product: UOp) -> UOp:
    """x·y - product, exactly, from products of halves."""
    x_high, y_high = upper_half(x), upper_half(y)
    x_low, y_low = x - x_high, y - y_high
    return ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low


# ---------------------------------------------------------------------- log2 to 64 bits

# (bound, factor, -log2(factor) high, low): for mantissas up to the bound, a short factor that
# scales them close to 1; the high part has at most 30 bits.
MANTISSA_PIECES = (
    (0.719, 1.46875, -0.5545888524502516, 7.726142071138573e-10),
    (0.8179, 1.296875, -0.3750394321978092, 8.50884463000724e-10),
    (0.933, 1.140625, -0.18982455972582102, 8.45803788354977e-10),
    (1.067, 1.0, 0.0, 0.0),
    (1.2194, 0.875, 0.1926450775936246, 3.487713007306381e-10),
    (1.3936, 0.765625, 0.3852901551872492, 6.975426014612762e-10),
    (math.inf, 0.671875, 0.5737352445721626, 7.257394329420302e-10),
)
# (log(1+r) - r + r²/2) / r³ for |r| ≤ 0.07
CUBIC = (
    0.3333333333333333, -0.2500000000000022, 0.20000000000000204, -0.16666666665771682,
    0.14285714284878887, -0.12500001022275142, 0.1111111206532316, -0.0999952366624026,
    0.09090464475598606, -0.08430310028053155, 0.07782825001721545,
)  # fmt: skip
LOG2_E_HIGH, LOG2_E_LOW = 1.442695040255785, 6.331784189566044e-10


def _log2_in_two(x: UOp) -> tuple[UOp, UOp]:
    """log2 of a positive finite double as a sum head + tail with a far smaller tail."""
    exponent, above_one = split_float(x)
    mantissa = above_one + 1.0
    factor, factor_log, factor_log_low = _piece(mantissa)
    r, r_low = _near_zero(mantissa, factor)
    log_high, log_low = _log_near_one(r, r_low)
    upper = upper_half(log_high)
    high = upper * LOG2_E_HIGH
    low = upper * LOG2_E_LOW + (log_high - upper + log_low) * LOG2_E + factor_log_low
    base = exponent + factor_log
    whole = base + high
    low = ((base - whole) + high) + low
    head = whole + low
    return head, (whole - head) + low


def _piece(mantissa: UOp) -> list[UOp]:
    """The factor for a mantissa, and minus its log2 in two parts."""
    found = [mantissa.const_like(value) for value in MANTISSA_PIECES[-1][1:]]
    for bound, *values in reversed(MANTISSA_PIECES[:-1]):
        is_below = mantissa < bound
        found = [
            is_below.where(mantissa.const_like(value), other)
            for value, other in zip(values, found, strict=True)
        ]
    return found


def _near_zero(mantissa: UOp, factor: UOp) -> tuple[UOp, UOp]:
    """mantissa·factor - 1 as a sum of two; the products of halves are exact."""
    upper = upper_half(mantissa)
    main, small = upper * factor - 1.0, (mantissa - upper) * factor
    r = main + small
    return r, (main - r) + small


def _log_near_one(r: UOp, r_low: UOp) -> tuple[UOp, UOp]:
    """log(1 + r + r_low) as a sum of two: r - r²/2 + r³·polynomial, the square in halves."""
    upper = upper_half(r)
    half_square = upper * upper * 0.5
    total = r - half_square
    lost = (r - total) - half_square
    square_rest = (r - upper) * (r + upper) * 0.5
    cubic = r * r * r * polynomial(r, CUBIC)
    return total, (lost - square_rest) + (r_low - r_low * r) + cubic
