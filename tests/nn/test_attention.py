"""MultiHeadAttention against PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from glassgrad import Tensor
from glassgrad.base.errors import ShapeError
from glassgrad.nn import MultiHeadAttention


@pytest.mark.parametrize("bias", [True, False])
def test_attention_to_itself_is_pytorchs(bias: bool) -> None:
    from torch_models import torch, with_weights_of

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


def test_attention_to_others_is_pytorchs() -> None:
    from torch_models import torch, with_weights_of

    theirs = torch.nn.MultiheadAttention(8, 4, batch_first=True)
    ours = with_weights_of(theirs, MultiHeadAttention(8, 4))
    random = np.random.default_rng(0)
    arrays = [random.standard_normal((2, n, 8)).astype(np.float32) for n in (3, 6, 6)]
    wanted = theirs(*map(torch.tensor, arrays), need_weights=False)[0].detach().numpy()
    assert_allclose(ours(*map(Tensor, arrays)).numpy(), wanted, atol=1e-6)


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(ShapeError, match="3 heads do not divide a width of 8"):
        MultiHeadAttention(8, 3)
