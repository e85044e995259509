"""SIN -> arithmetic: the angle as a fraction of a turn in fixed point, then a polynomial.

An angle is m·2^k with a whole number m. Of 1/2π, the bits that m·2^k turns into whole turns do not
matter, and those far behind the point neither: a window of two or three words, cut out of the
expansion at a place that k gives, is multiplied by m. Whole turns fall off the top of the product.
So every finite number, however large, has the right sine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.uop import UOp
from glassgrad.lower.polynomial import multiply_add, polynomial

# One word of zeros, then the binary digits of 1/2π behind the point.
WORDS = (
    0x0000000000000000, 0x28BE60DB9391054A, 0x7F09D5F47D4D3770, 0x36D8A5664F10E410,
    0x7F9458EAF7AEF158, 0x6DC91B8E909374B8, 0x01924BBA82746487, 0x3F877AC72C4A69CF,
    0xBA208D7D4BAED121, 0x3A671C09AD17DF90, 0x4E64758E60D4CE7D, 0x272117E2EF7E4A0E,
    0xC7FE25FFF7816603, 0xFBCBC462D6829B47, 0xDB4D9FB3C9F2C26D, 0xD3D18FD9A797FA8B,
    0x5D49EEB1FAF97C5E, 0xCF41CE7DE294A4BA, 0x9AFED7EC47E35742, 0x1580CC11BF1EDAEA,
    0xFC33EF0826BD0D87,
)  # fmt: skip
LOW_HALF = 0xFFFFFFFF
# 2π in two parts, the first of 21 bits.
TAU_HIGH = 6.283184051513672
TAU_LOW = 1.2556659146019252e-06


@dataclass(frozen=True)
class Form:
    """A float dtype's layout, how many words of window it needs, and its polynomials in x²."""

    bits: DType
    mantissa: int
    bias: int
    words: int
    sin: tuple[float, ...]  # (sin x - x) / x³
    cos: tuple[float, ...]  # (cos x - 1 + x²/2) / x⁴


FORMS = {
    dtypes.float32: Form(
        dtypes.uint32, 23, 127, 2,
        (-0.16666654226004937, 0.008332131521696864, -0.00019510841826507282),
        (0.041666645653706307, -0.0013887306082399026, 2.4431209017896785e-05),
    ),
    dtypes.float64: Form(
        dtypes.uint64, 52, 1023, 3,
        (-0.16666666666666666, 0.008333333333333321, -0.000198412698412536, 2.7557319213420215e-06,
         -2.5052104708772452e-08, 1.605834053834534e-10, -7.577393420620185e-13),
        (0.041666666666666664, -0.0013888888888888872, 2.4801587301569893e-05,
         -2.755731921468382e-07, 2.0876754209675588e-09, -1.147027544878104e-11,
         4.73730305097521e-14),
    ),
}  # fmt: skip


def sin(x: UOp) -> UOp:
    """sin x, from the quarter of the turn that |x| lies in and the angle within it."""
    form = FORMS[x.dtype.scalar]
    bits = x.bitcast(form.bits.vec(x.dtype.count))
    sign_bit = 1 << (form.bits.bits - 1)
    size_bits = bits & (sign_bit - 1)
    size = size_bits.bitcast(x.dtype)
    turned, quarter = _reduce(size_bits, x.dtype, form)
    # Below an eighth of a turn there is nothing to reduce, and fixed point would lose digits.
    is_small = size < math.pi / 4
    angle = is_small.where(size, turned)
    quarter = is_small.where(quarter.const_like(0), quarter)
    found = _in_quarter(angle, quarter, form).bitcast(bits.dtype)
    turns_sign = (quarter >> 1) << (form.bits.bits - 1)
    found = (found ^ turns_sign ^ (bits & sign_bit)).bitcast(x.dtype)
    return (size < math.inf).where(found, x.const_like(math.nan))


def _in_quarter(angle: UOp, quarter: UOp, form: Form) -> UOp:
    """sin or cos of an angle of at most an eighth of a turn, as the quarter's parity says."""
    square = angle * angle
    sine = multiply_add(angle * square, polynomial(square, form.sin), angle)
    near_one = multiply_add(square, square.const_like(-0.5), square.const_like(1.0))
    cosine = multiply_add(square * square, polynomial(square, form.cos), near_one)
    return (quarter & 1).eq(0).where(sine, cosine)


# ---------------------------------------------------------------------- the angle as turns


def _reduce(bits: UOp, dtype: DType, form: Form) -> tuple[UOp, UOp]:
    """(angle between ±π/4, number of the quarter turn mod 4) of a positive number's bits."""
    wide = dtypes.uint64.vec(dtype.count)
    implicit = 1 << form.mantissa
    mantissa = ((bits & (implicit - 1)) | implicit).cast(wide)
    # k + 64: the word of zeros in front makes room for numbers below 2^mantissa.
    place = (bits >> form.mantissa).cast(wide) + (64 - form.bias - form.mantissa)
    fraction = _fraction(mantissa, _window(place, form), form)
    rounded = fraction[0] + (1 << 61)  # an eighth of a turn more: the nearest quarter
    quarter = rounded >> 62
    signed = (rounded & ((1 << 62) - 1)) - (1 << 61)
    angle = _to_radians((signed, *fraction[1:]), dtype)
    return angle, quarter.cast(form.bits.vec(dtype.count))


def _window(place: UOp, form: Form) -> list[UOp]:
    """`form.words` words of the expansion from bit `place` on."""
    biggest = form.bias - form.mantissa + 64
    count = form.words + 1
    words = [place.const_like(word) for word in WORDS[: biggest // 64 + count]]
    number = place >> 6
    for level in reversed(range((biggest // 64).bit_length())):
        is_set = (number & (1 << level)).ne(0)
        length = count + (1 << level) - 1
        words = [_choose(is_set, words, i, 1 << level) for i in range(min(length, len(words)))]
    shift = place & 63
    return [(words[i] << shift) | ((words[i + 1] >> 1) >> (shift ^ 63)) for i in range(form.words)]


def _choose(is_set: UOp, words: list[UOp], place: int, step: int) -> UOp:
    """words[place + step] or words[place]; behind the end it is never asked for."""
    if place + step >= len(words):
        return words[place]
    return is_set.where(words[place + step], words[place])


def _fraction(m: UOp, window: list[UOp], form: Form) -> list[UOp]:
    """m · window without whole turns: one word of 64 bits, or two."""
    if form.words == 2:
        return [m * window[0] + ((m * (window[1] >> 32)) >> 32)]
    low = m * window[1]
    carry_in = _high_product(m, window[2])
    total = low + carry_in
    carry = (total < low).cast(m.dtype)
    return [m * window[0] + _high_product(m, window[1]) + carry, total]


def _high_product(x: UOp, y: UOp) -> UOp:
    """The upper 64 bits of a product of 64-bit words."""
    x_low, x_high, y_low, y_high = x & LOW_HALF, x >> 32, y & LOW_HALF, y >> 32
    middle = x_high * y_low + ((x_low * y_low) >> 32)
    other = x_low * y_high + (middle & LOW_HALF)
    return x_high * y_high + (middle >> 32) + (other >> 32)


def _to_radians(fraction: tuple[UOp, ...], dtype: DType) -> UOp:
    """A signed fraction of a turn, most significant word first, in radians.

    The sum of the first two halves may cancel, so it comes first, with what its rounding lost. Its
    first 20 bits times the first bits of 2π are exact, so the result is nearly rounded once.
    """
    double, signed = dtypes.float64.vec(dtype.count), dtypes.int64.vec(dtype.count)
    first = _int_to_double(fraction[0].bitcast(signed) >> 32, double) * 2.0**-32
    second = _int_to_double((fraction[0] & LOW_HALF).bitcast(signed), double) * 2.0**-64
    turns = first + second
    lost = second - (turns - first)
    for word in fraction[1:]:
        lost = lost + _int_to_double((word >> 32).bitcast(signed), double) * 2.0**-96
        lost = lost + _int_to_double((word & LOW_HALF).bitcast(signed), double) * 2.0**-128
    head = (turns.bitcast(signed) & -LOW_HALF - 1).bitcast(double)
    tail = (turns - head) + lost
    rest = multiply_add(tail, tail.const_like(math.tau), head * TAU_LOW)
    return multiply_add(head, head.const_like(TAU_HIGH), rest).cast(dtype)


def _int_to_double(value: UOp, double: DType) -> UOp:
    """A number of at most 51 bits, put into the low bits of a double that is subtracted again."""
    shifted = value + 0x4338000000000000
    return shifted.bitcast(double) - 1.5 * 2.0**52
