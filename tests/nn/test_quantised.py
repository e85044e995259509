"""Products with matrices of few bits."""

from __future__ import annotations

import numpy as np
import pytest
from support.files.gguf import quantised

from glassgrad import GlobalCounters, Tensor
from glassgrad.nn.files.quantised import FORMATS
from glassgrad.nn.quantised import Blocks, QuantisedEmbedding, QuantisedLinear

ROWS, KINDS = 40, (2, 8, 12, 14)
X = np.random.default_rng(0).standard_normal((5, 768), np.float32)
HALVES = {12: (0, 2), 14: (208,)}  # where a block of 256 numbers has its scales


def matrix(kind: int) -> tuple[Blocks, np.ndarray]:
    """Blocks, and the numbers that they stand for."""
    rng, form = np.random.default_rng(kind), FORMATS[kind]
    if kind in HALVES:
        raw = rng.integers(0, 256, (ROWS, 3, form.nbytes), np.uint8)  # any bytes are numbers
        for at in HALVES[kind]:
            raw[:, :, at : at + 2] = rng.random((ROWS, 3, 1)).astype(np.float16).view(np.uint8)
    else:
        raw = quantised(kind, rng.standard_normal((ROWS, 96), np.float32))
    numbers = form.read(raw.reshape(-1, form.nbytes)).reshape(ROWS, -1)
    return Blocks(kind, raw), numbers


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_products_are_those_of_the_numbers(kind: int, count: int) -> None:
    blocks, numbers = matrix(kind)
    x = X[:count, : numbers.shape[1]]
    expected = x @ numbers.T
    near = {"rtol": 1e-4, "atol": 1e-6 * np.abs(numbers).sum(1).max()}
    np.testing.assert_allclose(blocks.times(Tensor(x)).numpy(), expected, **near)
    bias = np.arange(ROWS, dtype=np.float32)
    layer = QuantisedLinear(blocks, Tensor(bias))
    shaped = layer(Tensor(x).unsqueeze(0)).numpy()
    np.testing.assert_allclose(shaped[0], expected + bias, **near)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_the_numbers(kind: int) -> None:
    blocks, numbers = matrix(kind)
    found = QuantisedEmbedding(blocks)(Tensor([[3, 0], [39, 7]]))
    near = {"rtol": 1e-5, "atol": 1e-5 * np.abs(numbers).max()}  # a product may be added unrounded
    np.testing.assert_allclose(found.numpy(), numbers[[[3, 0], [39, 7]]], **near)
    np.testing.assert_allclose(blocks.numbers().numpy(), numbers, **near)


@pytest.mark.parametrize("kind", KINDS)
def test_a_product_with_a_vector_is_one_kernel_over_the_bytes_of_the_file(kind: int) -> None:
    blocks, numbers = matrix(kind)
    x = Tensor(X[:1, : numbers.shape[1]]).realize()
    first, size = blocks.raw.ctypes.data, blocks.raw.nbytes
    kept = [part for name, part in blocks.parts.items() if name in ("codes", "low", "high")]
    assert kept and all(first <= part.uop.arg.address < first + size for part in kept)
    product = blocks.times(x)
    GlobalCounters.reset()
    product.realize()
    assert GlobalCounters.kernel_count == 1


def test_rows_are_put_in_order_and_below_each_other() -> None:
    blocks, numbers = matrix(8)
    order = np.arange(ROWS)[::-1]
    assert np.array_equal(blocks.arranged(order).numbers().numpy(), numbers[order])
    both = blocks.cat(blocks)
    assert both.shape == (2 * ROWS, 96)
    assert np.array_equal(both.numbers().numpy(), np.concatenate([numbers, numbers]))
