"""MultiHeadAttention: self-attention and cross-attention with input and output projections."""

from __future__ import annotations

from glassgrad.base.errors import ShapeError
from glassgrad.nn.linear import Linear
from glassgrad.tensor.tensor import Tensor


class MultiHeadAttention:
    """Attention over (batch, length, width) with input and output projections, as in PyTorch.

    Without a key it is self-attention. A boolean `attn_mask` selects visible keys; a float one is
    added to the scores. The batch axis is optional.

    >>> MultiHeadAttention(8, 2)(Tensor.ones(1, 5, 8), is_causal=True).shape
    (1, 5, 8)
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True
    ) -> None:
        if num_heads < 1 or embed_dim % num_heads:
            raise ShapeError(f"embed_dim {embed_dim} is not divisible by num_heads {num_heads}")
        self.num_heads, self.dropout = num_heads, dropout
        self.in_proj_weight = Tensor.glorot_uniform(3 * embed_dim, embed_dim)
        self.in_proj_bias = Tensor.zeros(3 * embed_dim) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias)
        if bias:
            self.out_proj.bias = Tensor.zeros(embed_dim)

    def __call__(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        attn_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        if query.ndim == 2:
            key, value = (x if x is None else x.unsqueeze(0) for x in (key, value))
            return self(query.unsqueeze(0), key, value, attn_mask, is_causal).squeeze(0)
        q, k, v = self._projected(query, key, value)
        attended = q.scaled_dot_product_attention(
            k, v, attn_mask=attn_mask, dropout_p=self.dropout, is_causal=is_causal
        )
        return self.out_proj(attended.transpose(1, 2).reshape(query.shape))

    def _projected(
        self, query: Tensor, key: Tensor | None, value: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of (batch, heads, length, width / heads); one product for
        self-attention.
        """
        if key is None and value is None:
            q, k, v = query.linear(self.in_proj_weight.transpose(), self.in_proj_bias).chunk(3, -1)
            return self._heads(q), self._heads(k), self._heads(v)
        key = query if key is None else key
        value = key if value is None else value
        weights = self.in_proj_weight.chunk(3)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        rows = zip((query, key, value), weights, biases, strict=True)
        q, k, v = (self._heads(x.linear(w.transpose(), b)) for x, w, b in rows)
        return q, k, v

    def _heads(self, x: Tensor) -> Tensor:
        if x.ndim != 3:
            raise ShapeError(
                f"cannot attend over a tensor of shape {x.shape}",
                hint="query, key and value need the axes (batch, length, width)",
            )
        batch, length, width = x.shape
        split = x.reshape(batch, length, self.num_heads, width // self.num_heads)
        return split.transpose(1, 2)
