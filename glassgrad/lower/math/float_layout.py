"""Float dtypes by their bits: where exponent and mantissa are, and arithmetic on them."""

from __future__ import annotations

import math

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.fast_dataclasses import frozen
from glassgrad.ir.uop import UOp

LOG2_E = math.log2(math.e)
UPPER_HALF = -1 << 32


@frozen
class FloatLayout:
    """A float dtype's layout; below `min_exponent` exp2 is 0, above `max_exponent` infinite."""

    bits: DType
    mantissa: int
    bias: int
    min_exponent: float
    max_exponent: float

    @property
    def rounder(self) -> float:
        """Added to a number, it leaves the nearest integer in the low bits of the sum."""
        return 1.5 * 2.0**self.mantissa

    @property
    def rounder_bits(self) -> int:
        return ((self.bias + self.mantissa) << self.mantissa) + (1 << (self.mantissa - 1))

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)


FLOAT_LAYOUTS = {
    dtypes.float32: FloatLayout(dtypes.int32, 23, 127, -151.0, 129.0),
    dtypes.float64: FloatLayout(dtypes.int64, 52, 1023, -1076.0, 1025.0),
}


def layout_of(x: UOp) -> FloatLayout:
    return FLOAT_LAYOUTS[x.dtype.scalar]


def bits_of(x: UOp) -> UOp:
    """The bits of a float as a signed integer."""
    return x.bitcast(layout_of(x).bits.vec(x.dtype.count))


def small_int_to_float(value: UOp, dtype: DType) -> UOp:
    """CAST of a small integer without the 64-bit int conversion that few machines have: placed in
    the low bits of a float, from which that float is subtracted.
    """
    if dtype.bits == 32:
        return value.cast(dtype)
    layout = FLOAT_LAYOUTS[dtype.scalar]
    return (value + layout.rounder_bits).bitcast(dtype) - layout.rounder


def upper_half(x: UOp) -> UOp:
    """A double with the lower half of its bits cleared: products of two such are exact."""
    return (bits_of(x) & UPPER_HALF).bitcast(x.dtype)


def upper_part(value: float, bits: int) -> float:
    """The number rounded towards zero to its first `bits` bits."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(math.trunc(mantissa * 2**bits), exponent - bits)
