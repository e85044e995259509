"""MultiHeadAttention against PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from glassgrad import Tensor
from glassgrad.base.errors import ShapeError
from glassgrad.nn import MultiHeadAttention


@pytest.mark.parametrize("bias", [True, False])
def test_self_attention_equals_pytorch(bias: bool) -> None:
    from support.references.torch_layers import torch, with_weights_of

    theirs = torch.nn.MultiheadAttention(8, 2, bias=bias, batch_first=True)
    ours = with_weights_of(theirs, MultiHeadAttention(8, 2, bias=bias))
    x = np.random.default_rng(0).standard_normal((3, 5, 8)).astype(np.float32)
    given = torch.tensor(x)
    wanted = theirs(given, given, given, need_weights=False)[0].detach().numpy()
    assert_allclose(ours(Tensor(x)).numpy(), wanted, atol=1e-6)
    hidden = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
    causal = theirs(given, given, given, attn_mask=hidden, need_weights=False)[0].detach().numpy()
    assert_allclose(ours(Tensor(x), is_causal=True).numpy(), causal, atol=1e-6)
    mask = Tensor(~hidden.numpy())
    assert_allclose(ours(Tensor(x), attn_mask=mask).numpy(), causal, atol=1e-6)


def test_cross_attention_equals_pytorch() -> None:
    from support.references.torch_layers import torch, with_weights_of

    theirs = torch.nn.MultiheadAttention(8, 4, batch_first=True)
    ours = with_weights_of(theirs, MultiHeadAttention(8, 4))
    random = np.random.default_rng(0)
    arrays = [random.standard_normal((2, n, 8)).astype(np.float32) for n in (3, 6, 6)]
    wanted = theirs(*map(torch.tensor, arrays), need_weights=False)[0].detach().numpy()
    assert_allclose(ours(*map(Tensor, arrays)).numpy(), wanted, atol=1e-6)


def test_attention_without_a_batch_axis() -> None:
    layer = MultiHeadAttention(8, 4)
    x, y = Tensor.rand(3, 8).realize(), Tensor.rand(6, 8).realize()
    assert_allclose(layer(x).numpy(), layer(x.unsqueeze(0)).numpy()[0], atol=1e-6)
    wanted = layer(x.unsqueeze(0), y.unsqueeze(0), y.unsqueeze(0)).numpy()[0]
    assert_allclose(layer(x, y, y).numpy(), wanted, atol=1e-6)


def test_other_shapes_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"cannot attend over a tensor of shape \(1, 2, 3, 8\)"):
        MultiHeadAttention(8, 4)(Tensor.ones(1, 2, 3, 8))


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(ShapeError, match="embed_dim 8 is not divisible by num_heads 3"):
        MultiHeadAttention(8, 3)


def test_attention_equals_its_definition() -> None:
    random = np.random.default_rng(0)
    x, layer = random.standard_normal((2, 5, 6)), MultiHeadAttention(6, 3)
    weight, out = layer.in_proj_weight.numpy(), layer.out_proj.weight.numpy()
    q, k, v = (x @ part.T for part in np.split(weight.astype(np.float64), 3))
    heads = []
    for head in range(3):
        part = slice(2 * head, 2 * head + 2)
        scores = q[..., part] @ k[..., part].transpose(0, 2, 1) / np.sqrt(2)
        shares = np.exp(scores)
        heads.append(shares / shares.sum(-1, keepdims=True) @ v[..., part])
    wanted = np.concatenate(heads, axis=-1) @ out.T  # biases begin as zeros
    assert_allclose(layer(Tensor(x)).numpy(), wanted, rtol=1e-5, atol=1e-7)
