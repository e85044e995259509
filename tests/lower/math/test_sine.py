"""Angles of any size have the right sine."""

import math

import numpy as np
import pytest
from support.compiler.on_cpu import apply, ulps

from glassgrad.base.dtype import DType, dtypes
from glassgrad.lower.math.sine import sin

WIDE = np.longdouble
NUMPY = {dtypes.float32: np.float32, dtypes.float64: np.float64}
both = pytest.mark.parametrize("dtype", list(NUMPY), ids=lambda dtype: dtype.name)


def run(x: np.ndarray) -> np.ndarray:
    dtype = dtypes.float32 if x.dtype == np.float32 else dtypes.float64
    return apply(sin, [x], [dtype], dtype)


@pytest.mark.skipif(
    np.finfo(WIDE).nmant <= 52, reason="no floats wider than 64 bits to compare with"
)
@both
def test_sin_of_moderate_angles_is_within_two_ulp(dtype: DType) -> None:
    random = np.random.default_rng(1)
    for reach in (0.01, 1.0, 10.0, 1e5):
        x = random.uniform(-reach, reach, 50_000).astype(NUMPY[dtype])
        assert ulps(run(x), np.sin(x.astype(WIDE))).max() <= 1.6


@both
def test_sin_of_huge_angles_is_reduced_exactly(dtype: DType) -> None:
    """The C library's sine is right to one ulp for every double."""
    random = np.random.default_rng(2)
    exponents = random.uniform(0, 127 if dtype is dtypes.float32 else 1023, 20_000)
    x = np.exp2(exponents).astype(NUMPY[dtype])
    # the doubles closest to a multiple of π/2
    x[:2] = 16367173 * 2.0**72, 6381956970095103 * (2.0**797 if dtype is dtypes.float64 else 1.0)
    want = np.array([math.sin(value) for value in x.tolist()])
    assert ulps(run(x), want).max() <= 2.6


@both
def test_sin_near_multiples_of_half_a_turn_keeps_its_digits(dtype: DType) -> None:
    x = (np.arange(1, 20_000) * math.pi).astype(NUMPY[dtype])
    want = np.array([math.sin(value) for value in x.tolist()])
    assert ulps(run(x), want).max() <= 2.6


@both
def test_sin_of_zero_small_numbers_infinity_and_nan(dtype: DType) -> None:
    kind = NUMPY[dtype]
    small = np.array(
        [0.0, -0.0, np.finfo(kind).smallest_subnormal, np.finfo(kind).tiny, 1e-30], kind
    )
    got = run(small)
    assert np.array_equal(got, small) and np.array_equal(np.signbit(got), np.signbit(small))
    assert np.isnan(run(np.array([np.inf, -np.inf, np.nan], kind))).all()


def test_sin_is_odd() -> None:
    x = np.random.default_rng(5).uniform(0, 1e6, 10_000).astype(np.float32)
    assert np.array_equal(run(-x), -run(x))


@both
def test_the_sine_of_a_quarter_turn_more_is_the_exact_cosine(dtype: DType) -> None:
    random = np.random.default_rng(8)
    x = np.concatenate(
        [random.uniform(-100, 100, 20_000), np.arange(1, 999) * math.pi / 2, [0, -0.0]]
    )
    x = x.astype(NUMPY[dtype])
    got = apply(lambda v: sin(v + math.pi / 2), [x], [dtype], dtype)
    assert ulps(got, np.array([math.cos(value) for value in x.tolist()])).max() <= 2.6
    other = apply(lambda v: sin(v + 1.57), [x], [dtype], dtype)
    assert np.allclose(other, np.sin(x + NUMPY[dtype](1.57)), atol=1e-5)
