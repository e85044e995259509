"""EXP2, LOG2, SIN, POW, THREEFRY -> arithmetic that every lane of a vector can do by itself.

Largest errors, measured by tests/lower/test_transcendental.py, in units of the last place:

            EXP2    exp     LOG2    SIN     POW
    float   1.0     1.25    1.0     1.6     0.51
    double  1.0     1.25    1.0     1.6     3, and a fifth of the result's exponent beyond 2^±16

`exp` is how e^x arrives here: EXP2(x * log2(e)). Rounding that product would cost as many bits as
the result's exponent has, so the factor is seen and the reduction is done on x itself.
Infinities, nan, signed zeros and denormals go in and come out as the C library has them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.lower.polynomial import multiply_add, polynomial
from glassgrad.lower.sine import sin
from glassgrad.lower.threefry import threefry

Coefficients = tuple[float, ...]

LOG2_E = math.log2(math.e)
LN_2 = Fraction("0.693147180559945309417232121458176568075500134360255254120680009493")
EXPONENT_BITS = 11


@dataclass(frozen=True)
class Form:
    """How a float dtype is laid out, and the polynomials that are good enough for it.

    `exp2` fits (2^f - 1)/f for |f| ≤ 1/2; `least` and `most` bound the exponents that matter.
    """

    bits: DType
    mantissa: int
    bias: int
    least: float
    most: float
    exp2: Coefficients

    @property
    def rounder(self) -> float:
        """Added to a number, it leaves the nearest integer in the low bits of the sum."""
        return 1.5 * 2.0**self.mantissa

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)


FORMS = {
    dtypes.float32: Form(
        dtypes.int32, 23, 127, -151.0, 129.0,
        (0.6931472076754622, 0.24022650729411182, 0.05550325179668875, 0.00961809732116655,
         0.0013401236549721528, 0.00015445385338942288),
    ),
    dtypes.float64: Form(
        dtypes.int64, 52, 1023, -1076.0, 1025.0,
        (0.6931471805599453, 0.24022650695910097, 0.0555041086648216, 0.009618129107606888,
         0.0013333558146416936, 0.0001540353044173605, 1.525273382983612e-05,
         1.321544258792169e-06, 1.0178062445845774e-07, 7.072585949269223e-09,
         4.4549605981865186e-10),
    ),
}  # fmt: skip


def expand(node: UOp) -> UOp:
    """The node in terms of arithmetic; its dtype is float or double (THREEFRY: ulong)."""
    return EXPANSIONS[node.op](*node.src)


def upper_part(value: float, bits: int) -> float:
    """The number with only its first `bits` bits kept."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(math.trunc(mantissa * 2**bits), exponent - bits)


# ---------------------------------------------------------------------- 2^x and e^x


def exp2(x: UOp) -> UOp:
    """2^x = 2^n · 2^f with n the nearest integer: bits of an exponent, times a polynomial."""
    if (scaled := times_log2_e(x)) is not None:
        return _exp2_scaled(*scaled)
    form = FORMS[x.dtype.scalar]
    x = x.maximum(form.least).minimum(form.most)
    shifted = x + form.rounder
    return _scale_by(_exp2_near_zero(x - (shifted - form.rounder), form.exp2), shifted, form)


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
    """Whether two numbers are one in a dtype, or as near as makes no difference."""
    letter = "f" if dtype.bits == 32 else "d"
    return struct.pack(letter, one) == struct.pack(letter, other) or math.isclose(
        one, other, rel_tol=2**-51
    )


def _exp2_scaled(x: UOp, multiple: float) -> UOp:
    """e^(x·k) = 2^(x·k·log2 e): the nearest n to that, and x - n·ln2/k in two exact steps."""
    form, factor, exact = FORMS[x.dtype.scalar], multiple * LOG2_E, LN_2 / Fraction(multiple)
    least, most = sorted((form.least / factor, form.most / factor))
    x = x.maximum(least).minimum(most)
    shifted = multiply_add(x, x.const_like(factor), x.const_like(form.rounder))
    n = shifted - form.rounder
    step = upper_part(float(exact), form.mantissa - EXPONENT_BITS)  # so that n·step is exact
    rest = multiply_add(n, x.const_like(-step), x)
    rest = multiply_add(n, x.const_like(float(Fraction(step) - exact)), rest)
    scaled = tuple(c * factor ** (i + 1) for i, c in enumerate(form.exp2))
    return _scale_by(_exp2_near_zero(rest, scaled), shifted, form)


def _exp2_near_zero(f: UOp, coefficients: Coefficients) -> UOp:
    return multiply_add(polynomial(f, coefficients), f, f.const_like(1.0))


def _scale_by(value: UOp, shifted: UOp, form: Form) -> UOp:
    """value · 2^n in two halves, so that neither overflows and denormals are rounded once.

    The low bits of `shifted` are n; what stands above them is shifted out.
    """
    bits = shifted.bitcast(form.bits.vec(shifted.dtype.count))
    half = bits >> 1
    for part in (half, bits - half):
        power = (part << form.mantissa) + (form.bias << form.mantissa)
        value = value * power.bitcast(value.dtype)
    return value


# ---------------------------------------------------------------------- log2

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
UPPER_HALF = -1 << 32


def log2(x: UOp) -> UOp:
    """log2(m · 2^e) = e + log2(m), with m between √½ and √2."""
    exponent, rest = split_float(x)
    if x.dtype.scalar is dtypes.float32:
        found = _log2_float(exponent, rest)
    else:
        head, tail = _log2_double(exponent, rest)
        found = head + tail
    return _log2_edges(x, found)


def split_float(x: UOp) -> tuple[UOp, UOp]:
    """(e, m - 1) of x = m · 2^e with √½ ≤ m < √2, both as floats; x is positive and finite."""
    form = FORMS[x.dtype.scalar]
    lift = form.mantissa + 1
    is_denormal = x < form.smallest_normal
    lifted = is_denormal.where(x * 2.0**lift, x)
    bits = lifted.bitcast(form.bits.vec(x.dtype.count))
    exponent = (bits - SQRT_HALF_BITS[x.dtype.scalar]) >> form.mantissa
    mantissa = (bits - (exponent << form.mantissa)).bitcast(x.dtype)
    lowered = is_denormal.where(exponent - lift, exponent)
    return _small_int_to_float(lowered, form, x.dtype), mantissa - 1.0


def _small_int_to_float(value: UOp, form: Form, dtype: DType) -> UOp:
    """CAST, but without the instruction for 64-bit ints that few machines have."""
    if dtype.bits == 32:
        return value.cast(dtype)
    rounder_bits: int = struct.unpack("<q", struct.pack("<d", form.rounder))[0]
    shifted = value + rounder_bits
    return shifted.bitcast(dtype) - form.rounder


def _log2_float(exponent: UOp, r: UOp) -> UOp:
    head = upper_part(LOG2_E, 24)
    low = multiply_add(r * r, polynomial(r, LOG2_FLOAT), r * (LOG2_E - head))
    return exponent + multiply_add(r, r.const_like(head), low)


def _log2_double(exponent: UOp, r: UOp) -> tuple[UOp, UOp]:
    """e + log2(1+r) as a sum of two numbers.

    log(1+r) = r - (r²/2 - s·(r²/2 + R)), with s = r/(2+r) and R = s²·polynomial(s²). What comes
    before the last bracket is kept to 20 bits, so that its product with log2(e) is exact.
    """
    s = r.alu(Ops.FDIV, r + 2.0)
    z = s * s
    half_square = r * r * 0.5
    head = _upper(r - half_square)
    tail = (r - head - half_square) + s * (half_square + z * polynomial(z, LOG_DOUBLE))
    factor = upper_part(LOG2_E, 30)
    high = head * factor
    low = multiply_add(tail, r.const_like(LOG2_E), head * (LOG2_E - factor))
    whole = exponent + high
    return whole, ((exponent - whole) + high) + low


def _upper(x: UOp) -> UOp:
    """A double without the lower half of its bits."""
    return (x.bitcast(dtypes.int64.vec(x.dtype.count)) & UPPER_HALF).bitcast(x.dtype)


def _log2_edges(x: UOp, found: UOp) -> UOp:
    """log2 of inf is inf, of 0 -inf, of negative numbers and nan nan."""
    positive = (x < math.inf).where(found, x)
    others = x.eq(0.0).where(x.const_like(-math.inf), x.const_like(math.nan))
    return (x.const_like(0.0) < x).where(positive, others)


# ---------------------------------------------------------------------- x^y


def power(x: UOp, y: UOp) -> UOp:
    """|x|^y = 2^(y·log2|x|), with the sign and the exceptions that the C library has."""
    bits = x.bitcast(FORMS[x.dtype.scalar].bits.vec(x.dtype.count))
    size = (bits & dtypes.max(bits.dtype)).bitcast(x.dtype)
    found = _power_float(size, y) if x.dtype.bits == 32 else _power_double(size, y)
    is_whole = y.alu(Ops.TRUNC).eq(y)
    half = y * 0.5
    is_odd = is_whole & half.alu(Ops.TRUNC).ne(half)
    found = (is_odd & (bits < 0)).where(-found, found)
    has_no_root = (x < 0.0) & (x.const_like(-math.inf) < x) & is_whole.ne(True)
    found = has_no_root.where(x.const_like(math.nan), found)
    return (y.eq(0.0) | x.eq(1.0)).where(x.const_like(1.0), found)


def _power_float(size: UOp, y: UOp) -> UOp:
    """Twice the precision makes every step exact enough."""
    wide = dtypes.float64.vec(y.dtype.count)
    logarithm = log2(size.cast(wide))
    product = logarithm.eq(0.0).where(logarithm, y.cast(wide) * logarithm)
    return exp2(product).cast(y.dtype)


def _power_double(size: UOp, y: UOp) -> UOp:
    """y·(head + tail) with the product's rounding error caught, then 2^ of both parts."""
    whole, low = _log2_double(*split_float(size))
    head = whole + low
    tail = (whole - head) + low
    rough = y * _log2_edges(size, head)
    y_high, head_high = _upper(y), _upper(head)
    y_low, head_low = y - y_high, head - head_high
    product = y * head
    error = ((y_high * head_high - product) + y_high * head_low + y_low * head_high) + (
        y_low * head_low
    )
    rest = multiply_add(y, tail, error)
    form = FORMS[dtypes.float64]
    is_tame = (rough < form.most).alu(Ops.AND, rough.const_like(form.least) < rough)
    safe = is_tame.where(product, product.const_like(0.0))
    shifted = safe + form.rounder
    fraction = (safe - (shifted - form.rounder)) + is_tame.where(rest, rest.const_like(0.0))
    tame = _scale_by(_exp2_near_zero(fraction, form.exp2), shifted, form)
    wild = size.eq(1.0).where(size, exp2(rough))
    return is_tame.where(tame, wild)


EXPANSIONS: dict[Ops, Callable[..., UOp]] = {
    Ops.EXP2: exp2,
    Ops.LOG2: log2,
    Ops.SIN: sin,
    Ops.POW: power,
    Ops.THREEFRY: threefry,
}
