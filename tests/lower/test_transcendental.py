"""The polynomials are as accurate as they say, everywhere."""

import math

import numpy as np
import pytest
from on_cpu import apply, ulps

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.lower.transcendental import expand, times_log2_e

FLOATS = [dtypes.float32, dtypes.float64]
WIDE = np.longdouble
HAS_WIDE = np.finfo(WIDE).nmant > 52
needs_wide = pytest.mark.skipif(not HAS_WIDE, reason="no floats wider than 64 bits to compare with")
both = pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
NUMPY = {dtypes.float32: np.float32, dtypes.float64: np.float64}
LOG2_E = math.log2(math.e)


def run(op: Ops, *arrays: np.ndarray) -> np.ndarray:
    dtype = dtypes.float32 if arrays[0].dtype == np.float32 else dtypes.float64
    function = lambda *x: expand(UOp(op, dtype.vec(8), x))  # noqa: E731
    return apply(function, list(arrays), [dtype] * len(arrays), dtype)


def edges(kind: type) -> np.ndarray:
    of = np.finfo(kind)
    tiny = [of.tiny, of.smallest_subnormal, of.tiny / 2, of.max, 1, 0.5, 2, 3, 2.5, 1e30, np.inf, 0]
    return np.array([*tiny, *(-x for x in tiny), np.nan], kind)


def some(kind: type, low: float, high: float, count: int = 100_000) -> np.ndarray:
    values = np.random.default_rng(7).uniform(low, high, count).astype(kind)
    return np.concatenate([edges(kind), values])


def every_float(step: int) -> np.ndarray:
    return np.arange(0, 1 << 32, step, dtype=np.uint32).view(np.float32)


@needs_wide
@both
def test_exp2_is_within_one_ulp(dtype: DType) -> None:
    kind = NUMPY[dtype]
    for reach in (1.0, 160.0 if kind is np.float32 else 1100.0):
        x = some(kind, -reach, reach)
        with np.errstate(all="ignore"):
            assert ulps(run(Ops.EXP2, x), np.exp2(x.astype(WIDE))).max() <= 1.0


@needs_wide
def test_exp2_and_log2_are_right_for_floats_of_every_size() -> None:
    x = every_float(9973)
    with np.errstate(all="ignore"):
        assert ulps(run(Ops.EXP2, x), np.exp2(x.astype(WIDE))).max() <= 1.0
        assert ulps(run(Ops.LOG2, x), np.log2(x.astype(WIDE))).max() <= 1.0


@needs_wide
@both
@pytest.mark.parametrize("multiple", [1, -1, 2, 0.5, -3])
def test_exp_through_exp2_loses_nothing_at_large_arguments(dtype: DType, multiple: float) -> None:
    kind = NUMPY[dtype]
    x = some(kind, -750 / abs(multiple), 750 / abs(multiple))
    function = lambda v: expand(UOp(Ops.EXP2, v.dtype, (v * (multiple * LOG2_E),)))  # noqa: E731
    got = apply(function, [x], [dtype], dtype)
    with np.errstate(all="ignore"):
        assert ulps(got, np.exp(x.astype(WIDE) * multiple)).max() <= 1.25


def test_other_factors_are_not_taken_for_log2_e() -> None:
    x = UOp(Ops.VARIABLE, dtypes.float32, (), ("x", 0, 1))
    assert times_log2_e(x * LOG2_E) == (x, 1.0)
    assert times_log2_e(UOp(Ops.MUL, x.dtype, (x.const_like(-2 * LOG2_E), x))) == (x, -2.0)
    assert times_log2_e(x * float(np.float32(LOG2_E))) == (x, 1.0)
    for factor in (1.1, 1.44, 3.0, LOG2_E * 1.0001, 1e9 * LOG2_E):
        assert times_log2_e(x * factor) is None
    assert times_log2_e(x + LOG2_E) is None


@needs_wide
@both
def test_log2_is_within_one_ulp(dtype: DType) -> None:
    kind = NUMPY[dtype]
    with np.errstate(all="ignore"):
        spread = np.exp2(some(kind, -120, 120))
    denormal = (np.arange(1, 2000) * np.finfo(kind).smallest_subnormal).astype(kind)
    x = np.concatenate([some(kind, 0.5, 2), spread, denormal])
    with np.errstate(all="ignore"):
        assert ulps(run(Ops.LOG2, x), np.log2(x.astype(WIDE))).max() <= 1.0


@needs_wide
@pytest.mark.parametrize(
    ("dtype", "reach", "bound"),
    [
        (dtypes.float32, 126, 0.51),
        (dtypes.float64, 1, 1.2),
        (dtypes.float64, 8, 3.0),
        (dtypes.float64, 1000, 250.0),
    ],
)
def test_pow_is_as_accurate_as_it_says(dtype: DType, reach: float, bound: float) -> None:
    kind = NUMPY[dtype]
    random = np.random.default_rng(3)
    x = np.exp2(random.uniform(-10, 10, 100_000)).astype(kind)
    y = (random.uniform(-reach, reach, 100_000) / np.log2(x.astype(WIDE))).astype(kind)
    assert ulps(run(Ops.POW, x, y), np.power(x.astype(WIDE), y.astype(WIDE))).max() <= bound


@both
def test_pow_has_the_exceptions_of_the_c_library(dtype: DType) -> None:
    kind = NUMPY[dtype]
    x, y = (axis.ravel() for axis in np.meshgrid(edges(kind), edges(kind)))
    with np.errstate(all="ignore"):
        want = np.power(x, y)
    got = run(Ops.POW, x, y)
    assert np.array_equal(np.isnan(got), np.isnan(want))
    number = ~np.isnan(want)
    assert np.array_equal(np.signbit(got[number]), np.signbit(want[number]))
    assert np.allclose(got[number], want[number], rtol=1e-6, atol=0)


def test_threefry_gives_the_published_vectors() -> None:
    known = {  # counter, key: result
        (0, 0): 0x99BA4EFE6B200159,
        (0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF): 0xBB002BE71CB996FC,
        (0x85A308D3243F6A88, 0x0370734413198A2E): 0x483DF7A0C4923A9C,
    }
    counters, keys = np.array(list(known), np.uint64).T.copy()
    function = lambda x, y: expand(UOp(Ops.THREEFRY, x.dtype, (x, y)))  # noqa: E731
    got = apply(function, [counters, keys], [dtypes.uint64] * 2, dtypes.uint64)
    assert got.tolist() == list(known.values())
