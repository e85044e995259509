"""Matrix products and convolutions of random sizes, large enough for tiles, packing and cores."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from glassgrad import Tensor

SIZES = (1, 2, 5, 8, 13, 16, 17, 31, 48, 64, 65, 96, 130, 200)


def small_ints(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Small ints as float32: sums of their products are exact in any order."""
    return rng.integers(-3, 4, shape).astype(np.float32)


@pytest.mark.parametrize("batch", range(4))
def test_products_of_any_size_and_order_are_exact(batch: int) -> None:
    for seed in range(batch * 12, batch * 12 + 12):
        choice, rng = Random(seed), np.random.default_rng(seed)
        m, n, k = (choice.choice(SIZES) for _ in range(3))
        x, w, bias = small_ints(rng, m, k), small_ints(rng, k, n), small_ints(rng, n)
        left = Tensor(np.ascontiguousarray(x.T)).transpose() if seed % 2 else Tensor(x)
        right = Tensor(np.ascontiguousarray(w.T)).transpose() if seed % 3 else Tensor(w)
        got = (left @ right + Tensor(bias)).relu().numpy()
        want = np.maximum(x @ w + bias, 0)
        np.testing.assert_array_equal(got, want, err_msg=f"seed {seed}: {m}x{n}x{k}")


@pytest.mark.parametrize("batch", range(2))
def test_batches_of_products_are_exact(batch: int) -> None:
    for seed in range(batch * 8, batch * 8 + 8):
        choice, rng = Random(seed), np.random.default_rng(seed)
        b, m, n, k = choice.choice((1, 3, 8)), *(choice.choice(SIZES[:11]) for _ in range(3))
        x, w = small_ints(rng, b, m, k), small_ints(rng, b, n, k)
        got = (Tensor(x) @ Tensor(w).transpose(-2, -1)).numpy()
        np.testing.assert_array_equal(got, x @ w.transpose(0, 2, 1), err_msg=f"seed {seed}")


@pytest.mark.parametrize("batch", range(2))
def test_an_update_in_place_by_a_product_is_exact(batch: int) -> None:
    for seed in range(batch * 6, batch * 6 + 6):
        choice, rng = Random(seed), np.random.default_rng(seed)
        m, n, k = (choice.choice(SIZES) for _ in range(3))
        weight, x, y = small_ints(rng, m, n), small_ints(rng, k, m), small_ints(rng, k, n)
        target = Tensor(weight.copy()).realize()
        target.assign(target - Tensor(x).transpose() @ Tensor(y))
        np.testing.assert_array_equal(target.numpy(), weight - x.T @ y, err_msg=f"seed {seed}")


def convolve(x: np.ndarray, w: np.ndarray, padding: int, stride: int) -> np.ndarray:
    """A reference convolution: sliding windows and einsum."""
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    views = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    return np.einsum("bchwij,ocij->bohw", views[:, :, ::stride, ::stride], w)


@pytest.mark.parametrize("batch", range(3))
def test_convolutions_of_any_size_are_exact(batch: int) -> None:
    for seed in range(batch * 6, batch * 6 + 6):
        choice, rng = Random(seed), np.random.default_rng(seed)
        size, channels, outputs = choice.choice((7, 9, 14, 28)), choice.choice((1, 3, 16)), 8
        kernel, padding, stride = (
            choice.choice((1, 3, 5)),
            choice.randrange(3),
            choice.choice((1, 2)),
        )
        x, w = (
            small_ints(rng, 2, channels, size, size + 1),
            small_ints(rng, outputs, channels, kernel, kernel),
        )
        got = Tensor(x).conv2d(Tensor(w), padding=padding, stride=stride).numpy()
        want = convolve(x, w, padding, stride)
        np.testing.assert_array_equal(got, want, err_msg=f"seed {seed}")
