"""Casts between all dtypes: the table of docs/dtypes.md, compiled and interpreted."""

from __future__ import annotations

import math

import numpy as np
import pytest

from glassgrad import Tensor, dtypes
from glassgrad.base.dtype import DType, wrap
from glassgrad.base.rounding import round_float, round_int

FLOAT_VALUES = [
    0.0, -0.0, 0.4, -0.9, 1.5, -1.5, 126.9, 127.0, 127.9, 128.0, -128.0, -128.9, -129.0, 255.0,
    255.9, 256.0, 32767.5, 32768.0, -32769.0, 65535.0, 65536.0, 2147483520.0, 2147483647.0,
    2147483648.0, -2147483648.0, -2147483904.0, 4294967040.0, 4294967296.0, 9.2e18, 2.0**63,
    -(2.0**63), -9.3e18, 1.8e19, 2.0**64, 1e30, -1e30, math.inf, -math.inf, math.nan,
]  # fmt: skip
devices = pytest.mark.parametrize("device", ["CPU", "PYTHON"])
floats = pytest.mark.parametrize("source", dtypes.floats, ids=lambda dtype: dtype.name)
ints = pytest.mark.parametrize("source", dtypes.ints, ids=lambda dtype: dtype.name)


def saturate(value: float, dtype: DType) -> int:
    """Truncate, and clip to the range of the dtype; nan becomes 0."""
    if math.isnan(value):
        return 0
    low, high = int(dtypes.min(dtype)), int(dtypes.max(dtype))
    if math.isinf(value):
        return high if value > 0 else low
    return min(max(math.trunc(value), low), high)


def in_memory(values: list[float], dtype: DType, device: str) -> Tensor:
    """A tensor in memory; constants would be folded by the compiler."""
    unsigned = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}[dtype.itemsize]
    raw = Tensor(values, dtype="float64").cast(dtype).bitcast(unsigned).numpy()
    return Tensor(raw, device=device).bitcast(dtype)


@floats
@devices
@pytest.mark.parametrize("target", dtypes.ints, ids=lambda dtype: dtype.name)
def test_floats_to_ints_truncate_and_saturate(source: DType, target: DType, device: str) -> None:
    wanted = [saturate(round_float(value, source), target) for value in FLOAT_VALUES]
    assert in_memory(FLOAT_VALUES, source, device).cast(target).tolist() == wanted


@floats
@devices
def test_floats_to_bool(source: DType, device: str) -> None:
    wanted = [round_float(value, source) != 0 for value in FLOAT_VALUES]
    assert in_memory(FLOAT_VALUES, source, device).cast("bool").tolist() == wanted


def numbers(dtype: DType) -> np.ndarray:
    low, high = int(dtypes.min(dtype)), int(dtypes.max(dtype))
    odd = [2**24 + 1, 2**24 + 3, 2**53 + 1, 2**53 + 3, 2**63 - 1, 2**40 + 2**15 + 1, 449, 465, 2049]
    signed = [sign * n for n in (0, 1, 100, 200, 255, 40000, *odd) for sign in (1, -1)]
    return np.array([low, high, *(n for n in signed if low <= n <= high)], dtype.name)


@ints
@devices
@pytest.mark.parametrize("target", dtypes.ints, ids=lambda dtype: dtype.name)
def test_ints_to_ints_wrap(source: DType, target: DType, device: str) -> None:
    x = numbers(source)
    assert Tensor(x, device=device).cast(target).tolist() == [wrap(int(n), target) for n in x]


@ints
@devices
@pytest.mark.parametrize("target", dtypes.floats, ids=lambda dtype: dtype.name)
def test_ints_to_floats_are_rounded_once(source: DType, target: DType, device: str) -> None:
    x = numbers(source)
    wanted = np.array([round_int(int(n), target) for n in x])
    found = Tensor(x, device=device).cast(target).cast("float64").numpy()
    np.testing.assert_array_equal(found, wanted)


@devices
@pytest.mark.parametrize("target", dtypes.all, ids=lambda dtype: dtype.name)
def test_bools_become_zero_and_one(target: DType, device: str) -> None:
    found = Tensor(np.array([False, True]), device=device).cast(target)
    assert found.dtype is target and found.tolist() == [0, 1]


@devices
def test_float64_to_float32_equals_numpy(device: str) -> None:
    values = np.array([1 + 2**-24, 1 + 2**-24 + 2**-50, 1e300, -1e300, 1e-46, 1e-45, -0.0, np.nan])
    with np.errstate(over="ignore"):
        wanted = values.astype(np.float32)
    found = Tensor(values, device=device).cast("float32").numpy()
    np.testing.assert_array_equal(found, wanted)
    assert (np.signbit(found) == np.signbit(wanted)).all()


@devices
@pytest.mark.parametrize("target", dtypes.ints, ids=lambda dtype: dtype.name)
def test_constants_are_cast_like_values_in_memory(target: DType, device: str) -> None:
    """The compiler folds casts of constants with code of its own."""
    for value in FLOAT_VALUES:
        constant = Tensor.full((1,), value, dtype="float64", device=device).cast(target)
        assert constant.tolist() == [saturate(value, target)], value
