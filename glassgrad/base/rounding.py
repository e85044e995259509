"""Python number -> the value in a dtype: rounding, conversion between dtypes, and bits.

Conversions, the same on every device:

- to a float: the nearest value, ties to even; overflow gives inf, or nan where there is no inf
  (fp8e4m3)
- float to int: truncated; out of range gives the nearest bound, nan gives 0
- int to int: the low bits
- to bool: True if it differs from 0 (nan does)
"""

from __future__ import annotations

import math
import struct

from glassgrad.base.dtype import (
    EXACT_INTS,
    FLOAT_LAYOUT,
    ConstType,
    DType,
    dtypes,
    round_int_to_odd,
    wrap,
)

SINGLE, HALF = struct.Struct("<f"), struct.Struct("<e")


def round_float(value: float, dtype: DType) -> float:
    """The nearest value of a float dtype, ties to even.

    >>> round_float(0.1, dtypes.bfloat16), round_float(1e6, dtypes.half)
    (0.10009765625, inf)
    """
    scalar = dtype.scalar
    if scalar is dtypes.float64:
        return value
    if scalar is dtypes.float32 or scalar is dtypes.float16:
        packing = SINGLE if scalar is dtypes.float32 else HALF
        try:
            return float(packing.unpack(packing.pack(value))[0])
        except OverflowError:
            return math.copysign(math.inf, value)
    return _round_low_precision(value, scalar)


def _round_low_precision(value: float, dtype: DType) -> float:
    """Scale the last place of the dtype to 1, and round."""
    has_inf = dtype is not dtypes.fp8e4m3
    if value == 0 or math.isnan(value):
        return value
    if math.isinf(value):
        return value if has_inf else math.nan
    exponent_bits, mantissa_bits = FLOAT_LAYOUT[dtype]
    bias = (1 << (exponent_bits - 1)) - 1
    exponent = max(math.frexp(value)[1] - 1, 1 - bias)
    last = exponent - mantissa_bits
    rounded = math.ldexp(round(math.ldexp(abs(value), -last)), last)
    if rounded > largest(dtype):
        rounded = math.inf if has_inf else math.nan
    return math.copysign(rounded, value)


def largest(dtype: DType) -> float:
    """The largest finite value of a float dtype."""
    exponent_bits, mantissa_bits = FLOAT_LAYOUT[dtype.scalar]
    if dtype.scalar is dtypes.fp8e4m3:
        return 448.0
    return math.ldexp(2.0 - 2.0**-mantissa_bits, (1 << (exponent_bits - 1)) - 1)


def round_int(value: int, dtype: DType) -> float:
    """The float nearest to an int, rounded once: going through float64 would round twice."""
    is_long = abs(value) >= EXACT_INTS and dtype.scalar is not dtypes.float64
    try:
        return round_float(round_int_to_odd(value) if is_long else float(value), dtype)
    except OverflowError:
        return round_float(math.inf if value > 0 else -math.inf, dtype)


def convert(value: ConstType, dtype: DType) -> ConstType:
    """A number as CAST to the dtype converts it.

    >>> convert(300.7, dtypes.uchar), convert(300, dtypes.uchar), convert(-1.5, dtypes.int)
    (255, 44, -1)
    """
    if dtype.kind == "float":
        return round_float(value, dtype) if isinstance(value, float) else round_int(value, dtype)
    if isinstance(value, float) and dtype.kind != "bool":
        if math.isnan(value):
            return 0
        low, high = int(dtypes.min(dtype)), int(dtypes.max(dtype))
        return low if value <= low else high if value >= high else int(value)
    return wrap(value, dtype)


# ---------------------------------------------------------------------- bits

NAN_BITS = {
    dtypes.fp8e4m3: 0x7F,
    dtypes.fp8e5m2: 0x7E,
    dtypes.float16: 0x7E00,
    dtypes.bfloat16: 0x7FC0,
    dtypes.float32: 0x7FC0_0000,
    dtypes.float64: 0x7FF8_0000_0000_0000,
}


def to_bits(value: ConstType, dtype: DType) -> int:
    """The bits of a value as an unsigned integer. All nans have the same bits.

    >>> hex(to_bits(1.0, dtypes.float)), hex(to_bits(-1, dtypes.short))
    ('0x3f800000', '0xffff')
    """
    if dtype.kind != "float":
        return int(value) & ((1 << dtype.scalar.bits) - 1)
    scalar = dtype.scalar
    number = float(convert(value, scalar))
    if math.isnan(number):
        return NAN_BITS[scalar]
    exponent_bits, mantissa_bits = FLOAT_LAYOUT[scalar]
    bias = (1 << (exponent_bits - 1)) - 1
    sign = int(math.copysign(1.0, number) < 0) << (scalar.bits - 1)
    if math.isinf(number):
        return sign | ((1 << exponent_bits) - 1) << mantissa_bits
    exponent = max(math.frexp(number)[1] - 1, 1 - bias) if number else 1 - bias
    mantissa = int(math.ldexp(abs(number), mantissa_bits - exponent))
    # The implicit leading bit of normal numbers carries into the exponent field.
    return sign | (mantissa + ((exponent + bias - 1) << mantissa_bits))


def from_bits(bits: int, dtype: DType) -> ConstType:
    """The value with these bits.

    >>> from_bits(0x3F80_0000, dtypes.float), from_bits(0xFFFF, dtypes.short)
    (1.0, -1)
    """
    if dtype.kind != "float":
        return wrap(bits, dtype.scalar)
    scalar = dtype.scalar
    exponent_bits, mantissa_bits = FLOAT_LAYOUT[scalar]
    bias = (1 << (exponent_bits - 1)) - 1
    mantissa = bits & ((1 << mantissa_bits) - 1)
    field = bits >> mantissa_bits & ((1 << exponent_bits) - 1)
    sign = -1.0 if bits >> (scalar.bits - 1) & 1 else 1.0
    if scalar is dtypes.fp8e4m3:
        if bits & 0x7F == NAN_BITS[scalar]:
            return math.nan
    elif field == (1 << exponent_bits) - 1:
        return math.nan if mantissa else sign * math.inf
    if field:
        mantissa |= 1 << mantissa_bits
    return sign * math.ldexp(mantissa, max(field, 1) - bias - mantissa_bits)
