"""Floats x, y -> the remainder and the quotient of x / y, exact for every quotient.

With x = a·2^d·u and y = m·u, where a and m are integers and u is a power of two, the remainder is
(a·2^d mod m)·u. A rounded quotient would be wrong from 2^53 on, and d can be 2097, so 2^d mod m is
computed by repeated squaring, in a few steps without branches. Mantissas of float32 and narrower
dtypes are multiplied exactly in float64, those of float64 as 64-bit ints.
"""

from __future__ import annotations

import math
from typing import TypeVar

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.tensor.autograd.gradient import Derivative
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.record import mark_origin, record

T = TypeVar("T", bound=TensorCore)

MANTISSA = 52  # mantissa bits of a float64
BIAS = 1023  # exponent bias of a float64
FRACTION_MASK = (1 << MANTISSA) - 1
SIGN_MASK = -(1 << 63)
FLOAT32_MANTISSA = 23
# low bits of d, by mantissa bits; 2 to the power of its high bits is less than any m
LOW_BITS = {FLOAT32_MANTISSA: 4, MANTISSA: 6}
TO_NORMAL = 54  # a shift by this many bits makes every denormal float64 normal
SLIGHTLY_LESS = 1 - 2.0**-50
GRADIENT_OF_SECOND = Derivative(lambda y, g: g)  # the second source has the gradient of the result


def truncated_remainder(x: T, y: T) -> T:
    """x - trunc(x / y) · y: has the sign of x; x itself where y is infinite."""
    rest = _remainder(x, y)
    return _with_gradient(rest, _quotient(x, y, rest), x, y)


def floor_remainder(x: T, y: T) -> T:
    """x - floor(x / y) · y: has the sign of y, as in Python, even if it is 0."""
    rest, times = _remainder(x, y), _floor_quotient(x, y)
    zero = (y < 0).where(-rest.abs(), rest.abs())  # of the sign of y
    moved = _has_other_sign(rest, y).where(rest + y.cast(rest.dtype), rest)
    return _with_gradient(rest.eq(0).where(zero, moved), times, x, y)


def floor_quotient(x: T, y: T) -> T:
    """floor(x / y); where y is 0, x / y."""
    times = _floor_quotient(x, y)
    quotient = x / y
    return (y.eq(0) | times.eq(0)).where(quotient.trunc(), times.cast(x.dtype)).detach()


def _with_gradient(rest: T, times: T, x: T, y: T) -> T:
    """The remainder, with the gradient of x - times · y."""
    line = x - times.cast(x.dtype).detach() * y
    exact = rest.cast(x.dtype)
    return x._wrap(record(Ops.CUSTOM, exact.uop.dtype, (exact.uop, line.uop), GRADIENT_OF_SECOND))


def _quotient(x: T, y: T, rest: T) -> T:
    """The quotient rounded towards zero."""
    times = ((x.cast(rest.dtype) - rest) / y.cast(rest.dtype)).round()
    if y.dtype is not dtypes.float64:
        return times
    return x._wrap(mark_origin(_corrected(times.uop, x.uop, y.uop, rest.uop)))


def _floor_quotient(x: T, y: T) -> T:
    """The quotient rounded down."""
    rest = _remainder(x, y)
    times = _quotient(x, y, rest)
    return _has_other_sign(rest, y).where(times - 1, times)


def _has_other_sign(rest: T, other: T) -> T:
    """True where there is a remainder with the other sign."""
    return rest.ne(0) & ((rest < 0) ^ (other < 0))


def _remainder(x: T, y: T) -> T:
    """The remainder towards zero, as a float64."""
    digits = MANTISSA if y.dtype is dtypes.float64 else FLOAT32_MANTISSA
    left, right = [value.uop.cast(dtypes.float64) for value in (x, y)]
    return x._wrap(mark_origin(_fmod(left, right, digits)))


# ---------------------------------------------------------------------- whole numbers


def _fmod(x: UOp, y: UOp, digits: int) -> UOp:
    """x - trunc(x / y) · y of float64s with mantissas of digits + 1 bits."""
    sign = x.bitcast(dtypes.int64) & SIGN_MASK
    size, divisor = _absolute(x), _absolute(y)
    a, a_exponent, _ = _parts(size, digits)
    m, m_exponent, unit = _parts(divisor, digits)
    exponent = (a_exponent - m_exponent).maximum(0)
    left = _shifted_mod(a, exponent, m, digits)
    rest = left * 2.0**-digits * unit
    if digits == MANTISSA:
        rest = _is_denormal(divisor).where(rest * 2.0**-TO_NORMAL, rest)
    rest = (size < divisor).where(size, rest)
    is_defined = (size < math.inf) & (divisor.const_like(0.0) < divisor)
    rest = is_defined.where(rest, rest.const_like(math.nan))
    return (rest.bitcast(dtypes.int64) | sign).bitcast(dtypes.float64)


def _corrected(times: UOp, x: UOp, y: UOp, rest: UOp) -> UOp:
    """A float64 quotient that may be off by one, corrected where float64 holds it exactly.

    x - times · y - rest is a small multiple of y, so its lower 64 bits as an integer tell which.
    """
    size, divisor = _absolute(x), _absolute(y)
    a, a_exponent, _ = _parts(size, MANTISSA)
    m, m_exponent, unit = _parts(divisor, MANTISSA)
    exponent = (a_exponent - m_exponent).maximum(0).alu(Ops.MIN, a_exponent.const_like(63))
    scaled = _is_denormal(divisor).where(rest * 2.0**TO_NORMAL, rest)
    left = (_absolute(scaled).alu(Ops.FDIV, unit) * 2.0**MANTISSA).cast(dtypes.int64)
    whole, count = m.cast(dtypes.int64), _absolute(times)
    off = (a.cast(dtypes.int64) << exponent) - count.cast(dtypes.int64) * whole - left
    one = count.const_like(1.0)
    exact = (off < 0).where(count - one, off.eq(0).where(count, count + one))
    is_small = (count < 2.0 ** (MANTISSA + 1)) & (size < divisor).ne(True)
    sign = times.bitcast(dtypes.int64) & SIGN_MASK
    found = is_small.where(exact, count).bitcast(dtypes.int64) | sign
    return found.bitcast(dtypes.float64)


def _absolute(x: UOp) -> UOp:
    return (x.bitcast(dtypes.int64) & ~SIGN_MASK).bitcast(dtypes.float64)


def _is_denormal(x: UOp) -> UOp:
    return x < 2.0 ** (1 - BIAS)


def _parts(x: UOp, digits: int) -> tuple[UOp, UOp, UOp]:
    """(n, e, unit) of a positive number: n is an integer, x is n · 2^(e - BIAS - digits), and unit
    is 2^(e - BIAS), times 2^TO_NORMAL for a denormal number.
    """
    moved = x
    if digits == MANTISSA:  # other dtypes are normal numbers in float64
        moved = _is_denormal(x).where(x * 2.0**TO_NORMAL, x)
    bits = moved.bitcast(dtypes.int64)
    whole = ((bits & FRACTION_MASK) | ((BIAS + digits) << MANTISSA)).bitcast(dtypes.float64)
    exponent = bits >> MANTISSA
    if digits == MANTISSA:
        exponent = _is_denormal(x).where(exponent - TO_NORMAL, exponent)
    return whole, exponent, (bits & ~FRACTION_MASK).bitcast(dtypes.float64)


def _shifted_mod(a: UOp, exponent: UOp, m: UOp, digits: int) -> UOp:
    """a · 2^exponent mod m: the upper bits of the exponent first, then one squaring per lower
    bit.
    """
    low = LOW_BITS[digits]
    power = (((exponent >> low) + BIAS) << MANTISSA).bitcast(dtypes.float64)
    inverse = m.const_like(1.0).alu(Ops.FDIV, m)
    multiply = _multiply_long if digits == MANTISSA else _multiply
    for bit in reversed(range(low)):
        is_set = ((exponent >> bit) & 1).ne(0)
        power = multiply(power, power, m, inverse, is_set)
    left = multiply(a, power, m, inverse, None)
    return (left < m).where(left, left - m)


def _multiply(x: UOp, y: UOp, m: UOp, inverse: UOp, is_twice: UOp | None) -> UOp:
    """x · y mod m, or twice that, for 24-bit integers; the result may be m or slightly more.

    The quotient is never too large, so the remainder is never negative.
    """
    product = x * y
    if is_twice is not None:
        product = product * is_twice.where(product.const_like(2.0), product.const_like(1.0))
    quotient = (product * (inverse * SLIGHTLY_LESS)).alu(Ops.TRUNC)
    return product - quotient * m


def _multiply_long(x: UOp, y: UOp, m: UOp, inverse: UOp, is_twice: UOp | None) -> UOp:
    """x · y mod m, or twice that, for 53-bit integers.

    The float64 quotient is off by a few. The remainder is then small, so the lower 64 bits of both
    products determine it; a second quotient corrects it.
    """
    whole = m.cast(dtypes.int64)
    first = (x * y * inverse).cast(dtypes.int64)
    left = x.cast(dtypes.int64) * y.cast(dtypes.int64) - first * whole
    second = (left.cast(dtypes.float64) * inverse).cast(dtypes.int64)
    left = _reduced_once(left - second * whole, whole)
    if is_twice is not None:
        left = is_twice.where(_reduced_once(left + left, whole), left)
    return left.cast(dtypes.float64)


def _reduced_once(left: UOp, whole: UOp) -> UOp:
    """A number between -m and 2m, reduced to 0 … m."""
    left = (left < 0).where(left + whole, left)
    return (left < whole).where(left, left - whole)
