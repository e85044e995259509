"""Rounding and bits of every float format, against NumPy and ml_dtypes."""

import math
from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.values.numbers import same, values

from glassgrad.base.dtype import dtypes
from glassgrad.base.rounding import convert, from_bits, largest, round_float, round_int, to_bits

NARROW = {
    dtypes.fp8e4m3: ml_dtypes.float8_e4m3fn,
    dtypes.fp8e5m2: ml_dtypes.float8_e5m2,
    dtypes.float16: np.float16,
    dtypes.bfloat16: ml_dtypes.bfloat16,
}
FORMATS = NARROW | {dtypes.float32: np.float32, dtypes.float64: np.float64}


@pytest.mark.parametrize("dtype", NARROW, ids=lambda dtype: dtype.name)
def test_all_bit_patterns_decode_correctly(dtype):
    unsigned = np.uint8 if dtype.bits == 8 else np.uint16
    everything = np.arange(1 << dtype.bits, dtype=np.uint32).astype(unsigned)
    with np.errstate(all="ignore"):
        expected = everything.view(NARROW[dtype]).astype(np.float64)
    for bits in range(1 << dtype.bits):
        value = from_bits(bits, dtype)
        assert same(value, float(expected[bits]))
        assert math.isnan(value) or to_bits(value, dtype) == bits


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=lambda dtype: dtype.name)
@given(data=st.data())
def test_bits_of_float32_and_float64(dtype, data):
    bits = data.draw(st.integers(0, (1 << dtype.bits) - 1))
    unsigned = np.uint32 if dtype.bits == 32 else np.uint64
    expected = float(np.array([bits], unsigned).view(FORMATS[dtype])[0])
    assert same(from_bits(bits, dtype), expected)
    assert math.isnan(expected) or to_bits(expected, dtype) == bits


@pytest.mark.parametrize("dtype", FORMATS, ids=lambda dtype: dtype.name)
def test_nan_has_the_canonical_bits(dtype):
    number = np.array([math.nan]).astype(FORMATS[dtype])
    assert to_bits(math.nan, dtype) == int.from_bytes(number.tobytes(), "little") & ~(
        1 << (dtype.bits - 1)
    )


@pytest.mark.parametrize("dtype", NARROW, ids=lambda dtype: dtype.name)
@settings(max_examples=300)
@given(data=st.data())
def test_rounding_is_to_nearest_even(dtype, data):
    value = data.draw(values(dtypes.float32) | st.floats(width=32, allow_nan=False))
    with np.errstate(all="ignore"):
        expected = float(np.array([value], np.float32).astype(NARROW[dtype])[0])
    assert same(round_float(value, dtype), expected)


@pytest.mark.parametrize("dtype", NARROW, ids=lambda dtype: dtype.name)
def test_ties_round_to_even(dtype):
    finite = [from_bits(bits, dtype) for bits in range(1 << min(dtype.bits - 1, 12))]
    finite = [value for value in finite if math.isfinite(value)]
    for low, high in pairwise(finite):
        middle = (low + high) / 2
        even = low if to_bits(low, dtype) % 2 == 0 else high
        assert round_float(middle, dtype) == even
        assert round_float(math.nextafter(middle, math.inf), dtype) == high
        assert round_float(math.nextafter(middle, -math.inf), dtype) == low


@given(st.floats())
def test_float32_rounding_equals_numpy(value):
    with np.errstate(all="ignore"):
        assert same(round_float(value, dtypes.float), float(np.float32(value)))


@settings(max_examples=300)
@given(st.integers(-(2**64), 2**64))
def test_ints_become_float32_in_one_rounding(value):
    found = round_int(value, dtypes.float)
    low, high = np.float32(found), np.float32(found)
    neighbours = [
        float(np.nextafter(low, np.float32(-np.inf))),
        float(np.nextafter(high, np.float32(np.inf))),
    ]
    assert all(abs(int(found) - value) <= abs(int(other) - value) for other in neighbours)


def test_huge_ints_become_infinite():
    assert round_int(1 << 2000, dtypes.double) == math.inf
    assert round_int(-(1 << 2000), dtypes.float) == -math.inf
    assert round_int(1 << 70, dtypes.float) == 2.0**70


@pytest.mark.parametrize("dtype", FORMATS, ids=lambda dtype: dtype.name)
def test_the_largest_value(dtype):
    assert largest(dtype) == float(ml_dtypes.finfo(FORMATS[dtype]).max)


@given(st.sampled_from(dtypes.ints), st.integers(-(2**70), 2**70))
def test_ints_convert_by_their_low_bits(dtype, value):
    assert (convert(value, dtype) - value) % (1 << dtype.bits) == 0
    assert dtypes.min(dtype) <= convert(value, dtype) <= dtypes.max(dtype)
