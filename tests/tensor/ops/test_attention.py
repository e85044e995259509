"""Attention against its formula in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from support.values.arrays import distinct, same

from glassgrad import Tensor
from glassgrad.base.errors import ShapeError

ON_BOTH_BACKENDS = True

Q, K, V = (distinct((2, 4, 5, 8), seed=seed) for seed in range(3))


def attend(scores: np.ndarray, value: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True) @ value


def scores(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    return q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])


def test_attention_is_a_weighted_mean() -> None:
    got = Tensor(Q).scaled_dot_product_attention(Tensor(K), Tensor(V))
    same(got, attend(scores(Q, K), V), rtol=1e-9, atol=1e-12)


def test_causal_attention_ignores_later_positions() -> None:
    hidden = np.where(np.tril(np.ones((5, 5), bool)), scores(Q, K), -np.inf)
    got = Tensor(Q).scaled_dot_product_attention(Tensor(K), Tensor(V), is_causal=True)
    same(got, attend(hidden, V), rtol=1e-9, atol=1e-12)


def test_bool_masks_select_and_float_masks_are_added() -> None:
    mask = np.random.default_rng(0).random((5, 5)) < 0.7
    mask[:, 0] = True
    tensors = Tensor(K), Tensor(V)
    got = Tensor(Q).scaled_dot_product_attention(*tensors, attn_mask=Tensor(mask))
    same(got, attend(np.where(mask, scores(Q, K), -np.inf), V), rtol=1e-9, atol=1e-12)
    bias = distinct((5, 5), seed=7)
    got = Tensor(Q).scaled_dot_product_attention(*tensors, attn_mask=Tensor(bias))
    same(got, attend(scores(Q, K) + bias, V), rtol=1e-9, atol=1e-12)


def test_heads_of_queries_share_keys_and_values() -> None:
    k, v = K[:, :2], V[:, :2]
    got = Tensor(Q).scaled_dot_product_attention(Tensor(k), Tensor(v), enable_gqa=True)
    wanted = attend(scores(Q, np.repeat(k, 2, 1)), np.repeat(v, 2, 1))
    same(got, wanted, rtol=1e-9, atol=1e-12)


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match="do not fit"):
        Tensor(Q).scaled_dot_product_attention(Tensor(K[..., :4]), Tensor(V))
    with pytest.raises(ShapeError, match="not both"):
        Tensor(Q).scaled_dot_product_attention(
            Tensor(K), Tensor(V), attn_mask=Tensor(K), is_causal=True
        )
