"""floats x, y -> what is left of x, and how often y goes into it: exact for every quotient.

With x = a·2^d·u and y = m·u, where a and m are whole numbers and u is a power of two, what is left
of x is u times a·2^d mod m. A rounded quotient would be wrong from 2^53 on, and d can be 2097: so
2^d mod m is found by repeated squaring, in a few steps and without a branch. Whole numbers of
float32 and narrower dtypes are multiplied exactly in float64, those of float64 as 64-bit ints.
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

MANTISSA = 52  # bits of a float64 behind the point
BIAS = 1023  # of its exponent
FRACTION_MASK = (1 << MANTISSA) - 1
SIGN_MASK = -(1 << 63)
FLOAT32_MANTISSA = 23
LOW_BITS = {FLOAT32_MANTISSA: 4, MANTISSA: 6}  # of d; 2 to its other bits is less than any m
TO_NORMAL = 54  # bits that every denormal float64 is shifted by to become normal
SLIGHTLY_LESS = 1 - 2.0**-50
STRAIGHT = Derivative(lambda y, g: g)  # the second source has the gradient of the result


def towards_zero(x: T, y: T) -> T:
    """x - trunc(x / y) · y: the sign of x, and smaller than y; x itself where y is infinite."""
    rest = _rest(x, y)
    return _with_gradient(rest, _times(x, y, rest), x, y)


def downwards(x: T, y: T) -> T:
    """x - floor(x / y) · y: the sign of y, as Python has it, even if it is 0."""
    rest, times = _rest(x, y), _times_down(x, y)
    zero = (y < 0).where(-rest.abs(), rest.abs())  # of the sign of y
    moved = _differs(rest, y).where(rest + y.cast(rest.dtype), rest)
    return _with_gradient(rest.eq(0).where(zero, moved), times, x, y)


def floor_quotient(x: T, y: T) -> T:
    """How often y goes into x, rounded down; where y is 0, what x / y is."""
    times = _times_down(x, y)
    quotient = x / y
    return (y.eq(0) | times.eq(0)).where(quotient.trunc(), times.cast(x.dtype)).detach()


def _with_gradient(rest: T, times: T, x: T, y: T) -> T:
    """The remainder, whose gradient is that of x - times · y."""
    line = x - times.cast(x.dtype).detach() * y
    exact = rest.cast(x.dtype)
    return x._wrap(record(Ops.CUSTOM, exact.uop.dtype, (exact.uop, line.uop), STRAIGHT))


def _times(x: T, y: T, rest: T) -> T:
    """The quotient rounded towards zero."""
    times = ((x.cast(rest.dtype) - rest) / y.cast(rest.dtype)).round()
    if y.dtype is not dtypes.float64:
        return times
    return x._wrap(mark_origin(_corrected(times.uop, x.uop, y.uop, rest.uop)))


def _times_down(x: T, y: T) -> T:
    """The quotient rounded down."""
    rest = _rest(x, y)
    times = _times(x, y, rest)
    return _differs(rest, y).where(times - 1, times)


def _differs(rest: T, other: T) -> T:
    """Is there a rest, of another sign?"""
    return rest.ne(0) & ((rest < 0) ^ (other < 0))


def _rest(x: T, y: T) -> T:
    """The remainder towards zero, as a float64."""
    digits = MANTISSA if y.dtype is dtypes.float64 else FLOAT32_MANTISSA
    left, right = [value.uop.cast(dtypes.float64) for value in (x, y)]
    return x._wrap(mark_origin(_fmod(left, right, digits)))


# ---------------------------------------------------------------------- whole numbers


def _fmod(x: UOp, y: UOp, digits: int) -> UOp:
    """x - trunc(x / y) · y of float64s whose whole numbers have digits + 1 bits."""
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
    """A quotient of float64s that may be off by one, put right where float64 holds it exactly.

    x - times · y - rest is a small multiple of y, so the lower 64 bits of whole numbers show which.
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
    """(n, e, unit) of a positive number: n is whole, x is n · 2^(e - BIAS - digits), and unit is
    2^(e - BIAS), or of a denormal number 2^TO_NORMAL times that.
    """
    moved = x
    if digits == MANTISSA:  # else a float64 holds it as a normal number
        moved = _is_denormal(x).where(x * 2.0**TO_NORMAL, x)
    bits = moved.bitcast(dtypes.int64)
    whole = ((bits & FRACTION_MASK) | ((BIAS + digits) << MANTISSA)).bitcast(dtypes.float64)
    exponent = bits >> MANTISSA
    if digits == MANTISSA:
        exponent = _is_denormal(x).where(exponent - TO_NORMAL, exponent)
    return whole, exponent, (bits & ~FRACTION_MASK).bitcast(dtypes.float64)


def _shifted_mod(a: UOp, exponent: UOp, m: UOp, digits: int) -> UOp:
    """a · 2^exponent mod m: the upper bits of the exponent first, then a square for each other."""
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
    """x · y mod m, or twice that, of numbers of 24 bits; it may be m itself, or a little more.

    The quotient is never too large, so what is left is never negative.
    """
    product = x * y
    if is_twice is not None:
        product = product * is_twice.where(product.const_like(2.0), product.const_like(1.0))
    quotient = (product * (inverse * SLIGHTLY_LESS)).alu(Ops.TRUNC)
    return product - quotient * m


def _multiply_long(x: UOp, y: UOp, m: UOp, inverse: UOp, is_twice: UOp | None) -> UOp:
    """x · y mod m, or twice that, of numbers of 53 bits.

    A quotient of float64s is off by a few. What is left is then small, so the lower 64 bits of
    both products give all of it; a second quotient puts it right.
    """
    whole = m.cast(dtypes.int64)
    first = (x * y * inverse).cast(dtypes.int64)
    left = x.cast(dtypes.int64) * y.cast(dtypes.int64) - first * whole
    second = (left.cast(dtypes.float64) * inverse).cast(dtypes.int64)
    left = _wrapped(left - second * whole, whole)
    if is_twice is not None:
        left = is_twice.where(_wrapped(left + left, whole), left)
    return left.cast(dtypes.float64)


def _wrapped(left: UOp, whole: UOp) -> UOp:
    """A number between -m and 2m, between 0 and m."""
    left = (left < 0).where(left + whole, left)
    return (left < whole).where(left, left - whole)
