"""SIN -> the angle reduced to a fraction of a turn, exactly, then a polynomial.

An angle is m·2^k with an integer m. Of the binary digits of 1/2π, m·2^k turns the leading ones into
whole turns, and the far ones are below the precision: a window of digits, selected by the exponent
of the angle, is multiplied by the mantissa, and whole turns are dropped. So every finite number has
an accurate sine, however large it is. For float the window is three doubles; for double it is three
words in fixed point.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.fast_dataclasses import frozen
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.lower.math.float_layout import layout_of, small_int_to_float
from glassgrad.lower.math.polynomial import multiply_add, polynomial

# The binary digits of 1/2π after the point, 64 per word.
INVERSE_TAU_WORDS = (
    0x28BE60DB9391054A, 0x7F09D5F47D4D3770, 0x36D8A5664F10E410, 0x7F9458EAF7AEF158,
    0x6DC91B8E909374B8, 0x01924BBA82746487, 0x3F877AC72C4A69CF, 0xBA208D7D4BAED121,
    0x3A671C09AD17DF90, 0x4E64758E60D4CE7D, 0x272117E2EF7E4A0E, 0xC7FE25FFF7816603,
    0xFBCBC462D6829B47, 0xDB4D9FB3C9F2C26D, 0xD3D18FD9A797FA8B, 0x5D49EEB1FAF97C5E,
    0xCF41CE7DE294A4BA, 0x9AFED7EC47E35742, 0x1580CC11BF1EDAEA, 0xFC33EF0826BD0D87,
)  # fmt: skip
INVERSE_TAU_BITS = 64 * len(INVERSE_TAU_WORDS)
INVERSE_TAU = sum(
    word << (INVERSE_TAU_BITS - 64 * (i + 1)) for i, word in enumerate(INVERSE_TAU_WORDS)
)


@frozen
class SineMethod:
    """A float dtype's bits, its range reduction, and its polynomials in x²."""

    bits: DType
    reduce: Callable[[UOp, UOp], tuple[UOp, UOp]]
    sin: tuple[float, ...]  # (sin x - x) / x³
    cos: tuple[float, ...]  # (cos x - 1 + x²/2) / x⁴


def sin(x: UOp) -> UOp:
    """sin x, from the quarter turn of |x| and the angle within it."""
    x, shift = cosine_argument(x)
    method = SINE_METHODS[x.dtype.scalar]
    bits = x.bitcast(method.bits.vec(x.dtype.count))
    sign_bit = 1 << (method.bits.bits - 1)
    magnitude_bits = bits & (sign_bit - 1)
    magnitude = magnitude_bits.bitcast(x.dtype)
    reduced, quarter = method.reduce(magnitude, magnitude_bits)
    # Below an eighth of a turn there is nothing to reduce, and fixed point would lose digits.
    is_small = magnitude < math.pi / 4
    angle = is_small.where(magnitude, reduced)
    quarter = is_small.where(quarter.const_like(0), quarter) + shift
    result = _in_quarter(angle, quarter, method).bitcast(bits.dtype)
    result = result ^ ((quarter >> 1) << (method.bits.bits - 1))
    if not shift:
        result = result ^ (bits & sign_bit)  # the sine is odd, the cosine even
    return (magnitude < math.inf).where(result.bitcast(x.dtype), x.const_like(math.nan))


def cosine_argument(x: UOp) -> tuple[UOp, int]:
    """(y, 1) if x is y + π/2, whose sine is the cosine of y: a quarter turn is added exactly."""
    if x.op is not Ops.ADD or not x.src[1].is_const:
        return x, 0
    is_quarter = math.isclose(x.src[1].arg, math.pi / 2, rel_tol=1e-7)
    return (x.src[0], 1) if is_quarter else (x, 0)


def cosine_by_halves(node: UOp) -> UOp:
    """sin(x + π/2) -> 1 - 2 sin²(x/2), for targets without float64: accurate except near zeros."""
    half = (cosine_argument(node.src[0])[0] * 0.5).alu(Ops.SIN)
    return half.const_like(1.0) - half * half * 2.0


def _in_quarter(angle: UOp, quarter: UOp, method: SineMethod) -> UOp:
    """sin or cos of an angle of at most π/4, selected by the quarter's parity."""
    square = angle * angle
    sine = multiply_add(angle * square, polynomial(square, method.sin), angle)
    near_one = multiply_add(square, square.const_like(-0.5), square.const_like(1.0))
    cosine = multiply_add(square * square, polynomial(square, method.cos), near_one)
    return (quarter & 1).eq(0).where(sine, cosine)


# ---------------------------------------------------------------------- float: three doubles


def _inverse_tau_bits(start: int, count: int) -> float:
    """Digits start … start + count - 1 of 1/2π, with their weight."""
    return math.ldexp(
        float((INVERSE_TAU >> (INVERSE_TAU_BITS - start - count)) % (1 << count)), -start - count
    )


def _window(exponent: int) -> tuple[float, float, float]:
    """The digits that matter for floats from 2^exponent to 2^(exponent+32), in three pieces.

    A float has 24 bits, so its product with 29 digits is exact in a double.
    """
    start = max(0, exponent - 23)
    return (
        _inverse_tau_bits(start, 29),
        _inverse_tau_bits(start + 29, 29),
        _inverse_tau_bits(start + 58, 53),
    )


WINDOWS = [_window(exponent) for exponent in (0, 32, 64, 96)]


def _reduce_float(magnitude: UOp, bits: UOp) -> tuple[UOp, UOp]:
    """(angle between ±π/4, number of the quarter turn) of a positive float.

    The fractions of the pieces are added twice: first to find the nearest quarter, then, with that
    quarter subtracted first, for the remainder, which may be tiny but loses no digits.
    """
    wide = dtypes.float64.vec(magnitude.dtype.count)
    x = magnitude.cast(wide)
    first, second, third = (x * piece for piece in _pieces(magnitude, wide))
    first, second = (part - part.alu(Ops.TRUNC) for part in (first, second))
    turns = first + second + third
    rounder = layout_of(turns).rounder
    shifted = multiply_add(turns, turns.const_like(4.0), turns.const_like(rounder))
    quarter = shifted - rounder
    rest = multiply_add(quarter, quarter.const_like(-0.25), first) + second + third
    number = shifted.bitcast(dtypes.uint64.vec(magnitude.dtype.count)).cast(bits.dtype)
    return (rest * math.tau).cast(magnitude.dtype), number


def _pieces(magnitude: UOp, wide: DType) -> list[UOp]:
    """The window for a float's magnitude, one of four."""
    below = [magnitude < 2.0**exponent for exponent in (32, 64, 96)]
    pieces = []
    for candidates in zip(*WINDOWS, strict=True):
        a, b, c, d = (UOp(Ops.CONST, wide, (), value) for value in candidates)
        pieces.append(below[1].where(below[0].where(a, b), below[2].where(c, d)))
    return pieces


# ---------------------------------------------------------------------- double: fixed point

MANTISSA, BIAS = 52, 1023
MAX_WINDOW_START = 64 + BIAS - MANTISSA  # bits: the window of every finite double starts before
LOW_HALF = 0xFFFFFFFF
# 2π in two parts, the first of 21 bits.
TAU_HIGH, TAU_LOW = 6.283184051513672, 1.2556659146019252e-06


def _reduce_double(magnitude: UOp, bits: UOp) -> tuple[UOp, UOp]:
    """(angle between ±π/4, number of the quarter turn mod 4) of a positive double."""
    implicit = 1 << MANTISSA
    mantissa = (bits & (implicit - 1)) | implicit
    # A word of zeros in front of the digits serves numbers below 2^52.
    bit = (bits >> MANTISSA) + (64 - BIAS - MANTISSA)
    high, low = _fraction(mantissa, _words_from(bit))
    rounded = high + (1 << 61)  # an eighth of a turn more: the nearest quarter
    signed = (rounded & ((1 << 62) - 1)) - (1 << 61)
    return _to_radians(signed, low, magnitude.dtype), rounded >> 62


def _words_from(bit: UOp) -> list[UOp]:
    """Three words of the digits from bit `bit` on, with a word of zeros in front."""
    words = [bit.const_like(word) for word in (0, *INVERSE_TAU_WORDS)]
    number = bit >> 6
    for level in reversed(range((MAX_WINDOW_START // 64).bit_length())):
        step = 1 << level
        is_set = (number & step).ne(0)
        length = min(4 + step - 1, len(words))
        words = [_choose(is_set, words, i, step) for i in range(length)]
    shift = bit & 63
    return [(words[i] << shift) | ((words[i + 1] >> 1) >> (shift ^ 63)) for i in range(3)]


def _choose(is_set: UOp, words: list[UOp], bit: int, step: int) -> UOp:
    """words[bit + step] or words[bit]; never used beyond the end."""
    if bit + step >= len(words):
        return words[bit]
    return is_set.where(words[bit + step], words[bit])


def _fraction(m: UOp, window: list[UOp]) -> tuple[UOp, UOp]:
    """m · window modulo whole turns, in two words."""
    low = m * window[1]
    total = low + _high_product(m, window[2])
    carry = (total < low).cast(m.dtype)
    return m * window[0] + _high_product(m, window[1]) + carry, total


def _high_product(x: UOp, y: UOp) -> UOp:
    """The upper 64 bits of a product of 64-bit words."""
    x_low, x_high, y_low, y_high = x & LOW_HALF, x >> 32, y & LOW_HALF, y >> 32
    middle = x_high * y_low + ((x_low * y_low) >> 32)
    other = x_low * y_high + (middle & LOW_HALF)
    return x_high * y_high + (middle >> 32) + (other >> 32)


def _to_radians(high: UOp, low: UOp, double: DType) -> UOp:
    """A signed fraction of a turn in two words, in radians.

    The sum of the first two halves may cancel, so it comes first, with its rounding error. Its
    first 20 bits times the first bits of 2π are exact, so the result is rounded about once.
    """
    signed = dtypes.int64.vec(double.count)
    first = small_int_to_float(high.bitcast(signed) >> 32, double) * 2.0**-32
    second = small_int_to_float((high & LOW_HALF).bitcast(signed), double) * 2.0**-64
    turns = first + second
    lost = second - (turns - first)
    lost = lost + small_int_to_float((low >> 32).bitcast(signed), double) * 2.0**-96
    lost = lost + small_int_to_float((low & LOW_HALF).bitcast(signed), double) * 2.0**-128
    head = (turns.bitcast(signed) & -LOW_HALF - 1).bitcast(double)
    tail = (turns - head) + lost
    rest = multiply_add(tail, tail.const_like(math.tau), head * TAU_LOW)
    return multiply_add(head, head.const_like(TAU_HIGH), rest)


SINE_METHODS = {
    dtypes.float32: SineMethod(
        dtypes.uint32, _reduce_float,
        (-0.16666654226004937, 0.008332131521696864, -0.00019510841826507282),
        (0.041666645653706307, -0.0013887306082399026, 2.4431209017896785e-05),
    ),
    dtypes.float64: SineMethod(
        dtypes.uint64, _reduce_double,
        (-0.16666666666666666, 0.008333333333333321, -0.000198412698412536, 2.7557319213420215e-06,
         -2.5052104708772452e-08, 1.605834053834534e-10, -7.577393420620185e-13),
        (0.041666666666666664, -0.0013888888888888872, 2.4801587301569893e-05,
         -2.755731921468382e-07, 2.0876754209675588e-09, -1.147027544878104e-11,
         4.73730305097521e-14),
    ),
}  # fmt: skip
