"""Rounding, signs, tests and clamps against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from support.values.arrays import INTS, numbers, same

from glassgrad import Tensor, dtypes

ODD = (-0.0, 0.49999997, 3.7, -3.7, 1e10, 8388609.0, np.inf, -np.inf, np.nan)
EDGES = np.array([-2.5, -1.5, -0.5, 0.0, 0.5, 1.5, 2.5, *ODD], np.float32)


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rounding_agrees_with_numpy_on_every_edge(name: str, dtype: str) -> None:
    x = EDGES.astype(dtype)
    same(getattr(Tensor(x), name)(), getattr(np, name)(x))


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round"])
def test_rounding_leaves_ints_alone(name: str) -> None:
    assert getattr(Tensor([1, -2]), name)().tolist() == [1, -2]


@pytest.mark.parametrize("dtype", ["float32", "float64", *INTS])
def test_signs_and_distances(dtype: str) -> None:
    x = numbers((3, 4), dtype)
    same(Tensor(x).sign(), np.sign(x))
    same(Tensor(x).abs(), np.abs(x))


def test_the_sign_of_nan_is_nan() -> None:
    assert np.isnan(Tensor([float("nan")]).sign().item())


def test_tests_of_floats() -> None:
    x = Tensor(EDGES)
    same(x.isnan(), np.isnan(EDGES))
    same(x.isinf(), np.isinf(EDGES))
    same(x.isinf(detect_negative=False), np.isposinf(EDGES))
    same(x.isinf(detect_positive=False), np.isneginf(EDGES))
    same(x.isinf(detect_positive=False, detect_negative=False), np.zeros(EDGES.shape, bool))
    same(x.isfinite(), np.isfinite(EDGES))


def test_close_values_and_equal_infinities_are_close() -> None:
    x = np.array([1.0, 1.0, np.inf, np.inf, np.nan], np.float32)
    y = np.array([1.000001, 1.1, np.inf, -np.inf, np.nan], np.float32)
    same(Tensor(x).isclose(Tensor(y)), np.isclose(x, y))
    same(Tensor(x).isclose(Tensor(y), equal_nan=True), np.isclose(x, y, equal_nan=True))


def test_clamp_and_masked_fill() -> None:
    x = numbers((4, 5))
    same(Tensor(x).clamp(-1, 2), np.clip(x, -1, 2))
    same(Tensor(x).clip(max_=0), np.minimum(x, 0))
    same(Tensor(x).masked_fill(Tensor(x > 1), -7), np.where(x > 1, np.float32(-7), x))


def test_casts_by_name() -> None:
    x = Tensor([1.6])
    names = ["bool", "short", "int", "long", "half", "bfloat16", "float", "double"]
    found = [getattr(x, name)().dtype for name in names]
    assert found == [getattr(dtypes, name) for name in names]


def test_operations_that_change_nothing_still_give_another_tensor() -> None:
    x = Tensor([1.0, 2.0])
    for y in (x.float(), x.contiguous_backward(), x**1, x.roll(0), x.pad((0, 0)), x.repeat(1)):
        assert y is not x
        y += 1
        assert x.tolist() == [1, 2]


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "fp8e4m3", "fp8e5m2"])
def test_rounding_keeps_narrow_dtypes(name: str, dtype: str) -> None:
    x = [-2.5, -0.5, 0.5, 1.5, 2.5, 3.5]
    rounded = getattr(Tensor(x, dtype=dtype), name)()
    assert rounded.dtype.name == dtype
    assert rounded.tolist() == getattr(np, name)(np.array(x)).tolist()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int64"])
def test_closeness_of_whole_numbers_does_not_wrap(dtype: str) -> None:
    x, y = np.array([1, 0, 1], dtype), np.array([0, 1, 1], dtype)
    assert Tensor(x).isclose(Tensor(y)).tolist() == np.isclose(x, y).tolist()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "fp8e4m3"])
def test_the_distance_from_zero_has_no_sign(dtype: str) -> None:
    x = Tensor([-0.0, 0.0, -1.5, 2.0], dtype=dtype).realize()
    assert np.signbit(x.abs().float().numpy()).tolist() == [False] * 4
    assert x.abs().sum().gradient(x)[0].tolist() == [0.0, 0.0, -1.0, 1.0]
