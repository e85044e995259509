"""Quantised matrices: products and rows are those of the dequantised matrix."""

from __future__ import annotations

import numpy as np
import pytest
from support.files.gguf import quantised

from glassgrad import GlobalCounters, Tensor
from glassgrad.nn.files.gguf_dequantise import FORMATS
from glassgrad.nn.quantised import Blocks, QuantisedEmbedding, QuantisedLinear

ROWS, KINDS = 40, (2, 8, 12, 14)
X = np.random.default_rng(0).standard_normal((5, 768), np.float32)
SCALE_OFFSETS = {12: (0, 2), 14: (208,)}  # byte offsets of the float16 scales in a block


def matrix(kind: int) -> tuple[Blocks, np.ndarray]:
    """A random quantised matrix, and the same one dequantised."""
    rng, block_format = np.random.default_rng(kind), FORMATS[kind]
    if kind in SCALE_OFFSETS:
        raw = rng.integers(
            0, 256, (ROWS, 3, block_format.block_bytes), np.uint8
        )  # any codes are valid
        for offset in SCALE_OFFSETS[kind]:
            raw[:, :, offset : offset + 2] = (
                rng.random((ROWS, 3, 1)).astype(np.float16).view(np.uint8)
            )
    else:
        raw = quantised(kind, rng.standard_normal((ROWS, 96), np.float32))
    numbers = block_format.dequantise(raw.reshape(-1, block_format.block_bytes)).reshape(ROWS, -1)
    return Blocks(kind, raw), numbers


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_products_with_the_quantised_matrix(kind: int, count: int) -> None:
    blocks, numbers = matrix(kind)
    x = X[:count, : numbers.shape[1]]
    expected = x @ numbers.T
    tolerance = {"rtol": 1e-4, "atol": 1e-6 * np.abs(numbers).sum(1).max()}
    np.testing.assert_allclose(blocks.times(Tensor(x)).numpy(), expected, **tolerance)
    bias = np.arange(ROWS, dtype=np.float32)
    layer = QuantisedLinear(blocks, Tensor(bias))
    shaped = layer(Tensor(x).unsqueeze(0)).numpy()
    np.testing.assert_allclose(shaped[0], expected + bias, **tolerance)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_the_quantised_matrix(kind: int) -> None:
    blocks, numbers = matrix(kind)
    found = QuantisedEmbedding(blocks)(Tensor([[3, 0], [39, 7]]))
    tolerance = {
        "rtol": 1e-5,
        "atol": 1e-5 * np.abs(numbers).max(),
    }  # multiply and add may be fused
    np.testing.assert_allclose(found.numpy(), numbers[[[3, 0], [39, 7]]], **tolerance)
    np.testing.assert_allclose(blocks.numbers().numpy(), numbers, **tolerance)


@pytest.mark.parametrize("kind", KINDS)
def test_a_product_with_a_vector_is_one_kernel_over_the_bytes_of_the_file(kind: int) -> None:
    blocks, numbers = matrix(kind)
    x = Tensor(X[:1, : numbers.shape[1]]).realize()
    first, size = blocks.raw.ctypes.data, blocks.raw.nbytes
    code_tensors = [part for name, part in blocks.parts.items() if name in ("codes", "low", "high")]
    assert code_tensors
    assert all(first <= part.uop.arg.address < first + size for part in code_tensors)
    product = blocks.times(x)
    GlobalCounters.reset()
    product.realize()
    assert GlobalCounters.kernel_count == 1


def test_rows_are_reordered_and_concatenated() -> None:
    blocks, numbers = matrix(8)
    order = np.arange(ROWS)[::-1]
    assert np.array_equal(blocks.arranged(order).numbers().numpy(), numbers[order])
    both = blocks.cat(blocks)
    assert both.shape == (2 * ROWS, 96)
    assert np.array_equal(both.numbers().numpy(), np.concatenate([numbers, numbers]))
