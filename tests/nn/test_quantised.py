"""Products with matrices of few bits."""

from __future__ import annotations

import numpy as np
import pytest
from gguf_files import quantised

from glassgrad import GlobalCounters, Tensor
from glassgrad.nn.files.quantised import FORMATS
from glassgrad.nn.quantised import Blocks, QuantisedEmbedding, QuantisedLinear

ROWS, COLUMNS = 40, 96
X = np.random.default_rng(0).standard_normal((5, COLUMNS), np.float32)


def matrix(kind: int) -> tuple[Blocks, np.ndarray]:
    """Blocks, and the numbers that they stand for."""
    raw = quantised(kind, np.random.default_rng(kind).standard_normal((ROWS, COLUMNS), np.float32))
    numbers = FORMATS[kind].read(raw.reshape(-1, raw.shape[-1])).reshape(ROWS, COLUMNS)
    return Blocks(kind, raw), numbers


@pytest.mark.parametrize("kind", [2, 8])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_products_are_those_of_the_numbers(kind: int, count: int) -> None:
    blocks, numbers = matrix(kind)
    x = X[:count]
    expected = x @ numbers.T
    np.testing.assert_allclose(blocks.times(Tensor(x)).numpy(), expected, rtol=1e-4, atol=1e-4)
    bias = np.arange(ROWS, dtype=np.float32)
    layer = QuantisedLinear(blocks, Tensor(bias))
    shaped = layer(Tensor(x).unsqueeze(0)).numpy()
    np.testing.assert_allclose(shaped[0], expected + bias, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", [2, 8])
def test_rows_are_those_of_the_numbers(kind: int) -> None:
    blocks, numbers = matrix(kind)
    found = QuantisedEmbedding(blocks)(Tensor([[3, 0], [39, 7]]))
    assert np.array_equal(found.numpy(), numbers[[[3, 0], [39, 7]]])
    assert np.array_equal(blocks.numbers().numpy(), numbers)


@pytest.mark.parametrize("kind", [2, 8])
def test_a_product_with_a_vector_is_one_kernel_over_the_bytes_of_the_file(kind: int) -> None:
    blocks, _ = matrix(kind)
    x = Tensor(X[:1]).realize()
    assert blocks.codes.uop.arg.address == blocks.raw.ctypes.data + 2
    assert blocks.scales.uop.arg.address == blocks.raw.ctypes.data
    product = blocks.times(x)
    GlobalCounters.reset()
    product.realize()
    assert GlobalCounters.kernel_count == 1


def test_rows_are_put_in_order_and_below_each_other() -> None:
    blocks, numbers = matrix(8)
    order = np.arange(ROWS)[::-1]
    assert np.array_equal(blocks.arranged(order).numbers().numpy(), numbers[order])
    both = blocks.cat(blocks)
    assert both.shape == (2 * ROWS, COLUMNS)
    assert np.array_equal(both.numbers().numpy(), np.concatenate([numbers, numbers]))
