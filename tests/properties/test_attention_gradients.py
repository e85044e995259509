"""Attention and its gradients at odd sizes: few keys, few queries, heads of one number."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad import Tensor

TOLERANCE = {"float32": 2e-3, "bfloat16": 6e-2}  # of the largest element
# batch and heads, queries, keys, head size, masked
SIZES = [
    ((2, 12), 16, 1, 80, True),
    ((2, 12), 32, 1, 32, True),
    ((2, 12), 64, 64, 1, False),
    ((2, 12), 64, 64, 1, True),
    ((1, 4), 64, 64, 1, False),
    ((3, 5), 1, 31, 32, True),
    ((3, 5), 63, 2, 1, False),
    ((2, 12), 128, 31, 32, True),
    ((1, 4), 8, 16, 80, False),
    ((1, 1), 1, 1, 1, False),
]


def attention_gradients(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray
) -> list[np.ndarray]:
    """The result y, and the gradients of mean(y * y)."""
    scale = q.shape[-1] ** -0.5
    scores = q @ k.swapaxes(-1, -2) * scale + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    y = weights @ v
    dy = 2 * y / y.size
    dweights = dy @ v.swapaxes(-1, -2)
    dscores = weights * (dweights - (dweights * weights).sum(-1, keepdims=True)) * scale
    return [y, dscores @ k, dscores.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ dy]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("heads", "queries", "keys", "size", "is_masked"), SIZES)
def test_attention_and_its_gradients(
    heads: tuple[int, ...], queries: int, keys: int, size: int, is_masked: bool, dtype: str
) -> None:
    rng = np.random.default_rng(queries + keys)
    shapes = [(*heads, length, size) for length in (queries, keys, keys)]
    tensors = [
        Tensor(rng.standard_normal(shape, dtype=np.float32)).cast(dtype).realize().requires_grad_()
        for shape in shapes
    ]
    mask = rng.standard_normal((queries, keys), dtype=np.float32) * is_masked
    given = Tensor(mask).realize() if is_masked else None
    y = tensors[0].scaled_dot_product_attention(*tensors[1:], attn_mask=given)
    found = [y, *y.square().mean().gradient(*tensors)]
    Tensor.realize(*found)
    wanted = attention_gradients(*[x.numpy().astype(np.float64) for x in tensors], mask)
    largest = max([np.abs(gradient).max() for gradient in wanted[1:]])
    for one, other in zip(found, wanted, strict=True):
        scale = max(np.abs(other).max(), 1e-3 * largest)
        np.testing.assert_allclose(one.float().numpy(), other, atol=TOLERANCE[dtype] * scale)
