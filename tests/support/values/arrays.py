"""Random arrays, shapes and axes for property tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from glassgrad import Tensor

SHAPES = st.lists(st.sampled_from((0, 1, 1, 2, 3, 5)), max_size=4).map(tuple)
FULL_SHAPES = st.lists(st.sampled_from((1, 2, 3, 4)), min_size=1, max_size=4).map(tuple)
FLOATS = ("float32", "float64")
INTS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def numbers(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """Small numbers of both signs, halves for floats; no two dtypes need rounding."""
    rng = np.random.default_rng((seed, len(shape), sum(shape)))
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    low = 0 if dtype.startswith("u") else -9
    whole = rng.integers(low, 10, shape)
    return (whole * 0.5 if dtype.startswith("float") else whole).astype(dtype)


def distinct(shape: tuple[int, ...], dtype: str = "float64", seed: int = 0) -> np.ndarray:
    """Different numbers between -2 and 2: no ties, and nothing near 0."""
    rng = np.random.default_rng((seed, len(shape), sum(shape)))
    count = int(np.prod(shape))
    values = np.linspace(-2, 2, count + 2)[1:-1] if count else np.zeros(0)
    values = np.where(np.abs(values) < 0.05, 0.3, values)
    return rng.permutation(values).reshape(shape).astype(dtype)


def positive(shape: tuple[int, ...], dtype: str = "float64", seed: int = 0) -> np.ndarray:
    return np.abs(distinct(shape, dtype, seed)) + 0.25


def same(tensor: Tensor, array: Any, rtol: float = 0.0, atol: float = 0.0) -> None:
    """The tensor has the array's shape, dtype and values."""
    wanted = np.asarray(array)
    assert tensor.shape == wanted.shape, (tensor.shape, wanted.shape)
    got = tensor.numpy()
    assert got.dtype == wanted.dtype, (got.dtype, wanted.dtype)
    np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol)
