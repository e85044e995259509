"""Numbers of every dtype for property tests, and when two of them are the same."""

import math
import struct

from hypothesis import strategies as st

from glassgrad.base.dtype import dtypes
from glassgrad.base.rounding import from_bits, round_float


def values(dtype):
    """Values that the dtype holds: small ones, the ends of its range, and any bits."""
    if dtype.kind == "bool":
        return st.booleans()
    bits = st.integers(0, (1 << dtype.bits) - 1).map(lambda bits: from_bits(bits, dtype))
    if dtype.kind == "float":
        # Numbers that are not dyadic, half of the time: it takes rounding to tell sums apart.
        tame = st.integers(-9999, 9999).map(lambda n: round_float(n / 700, dtype))
        special = st.sampled_from([0.0, -0.0, 1.0, -1.0, math.nan])
        if dtype is not dtypes.fp8e4m3:
            special |= st.sampled_from([math.inf, -math.inf])
        return st.one_of(tame, tame, special, bits)
    low, high = int(dtypes.min(dtype)), int(dtypes.max(dtype))
    small = st.integers(max(low, -9), min(high, 9))
    return small | st.sampled_from([low, low + 1, high - 1, high]) | st.integers(low, high)


def same(left, right, signed=True):
    """Bit for bit, but that every nan is the same."""
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        if not signed and left == right == 0:
            return True
        return struct.pack("d", left) == struct.pack("d", right)
    return type(left) is type(right) and left == right
