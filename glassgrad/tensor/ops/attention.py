"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any, Self

from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import ShapeError
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.lazy.composite import composite


class Attention(TensorCore):
    """scaled_dot_product_attention."""

    __slots__ = ()

    def scaled_dot_product_attention(
        self,
        key: Self,
        value: Self,
        attn_mask: Self | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        enable_gqa: bool = False,
    ) -> Self:
        """softmax(query @ key.T / sqrt(width)) @ value, for queries of shape (…, heads, positions,
        width).

        A bool mask is True where a query may attend to a key; a float mask is added to the scores.

        >>> query, key, value = (Tensor.ones(1, 4, 2) for _ in "qkv")
        >>> query.scaled_dot_product_attention(key, value).tolist()[0][0]
        [1.0, 1.0]
        """
        key, value = self._as_tensor(key, "the key"), self._as_tensor(value, "the value")
        if min(x.ndim for x in (self, key, value)) < 2 + enable_gqa:
            raise ShapeError(
                f"queries {self.shape}, keys {key.shape} and values {value.shape} lack axes",
                hint="they are (…, heads, positions, width); heads are needed for enable_gqa",
            )
        if enable_gqa:  # several query heads share one key and value head
            times = int(self.shape[-3]) // int(key.shape[-3])
            key, value = key.repeat_interleave(times, -3), value.repeat_interleave(times, -3)
        if self.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
            raise ShapeError(
                f"queries {self.shape}, keys {key.shape} and values {value.shape} do not fit",
                hint="queries and keys have one width, keys and values one number of positions",
            )
        if is_causal and attn_mask is not None:
            raise ShapeError("attention is causal or has a mask, not both")
        return self._weights(key, attn_mask, is_causal).dropout(dropout_p).dot(value)

    def _scale(self, width: Any) -> Any:
        """1 / sqrt(width), where the width may be known only at launch."""
        if isinstance(width, int):
            return 1 / math.sqrt(width)
        return self.const_like(width).sqrt().reciprocal()

    @composite
    def _weights(self, key: Self, attn_mask: Self | None, is_causal: bool) -> Self:
        """The attention weights: softmax of the scaled and masked scores."""
        wide = dtypes.float32 if self.is_floating_point() and self.uop.dtype.bits < 32 else None
        scores: Self = self.dot(key.transpose(-2, -1), dtype=wide) * self._scale(self.shape[-1])
        if is_causal:
            rows, columns = self.shape[-2], key.shape[-2]
            attn_mask = self._iota(columns) <= self._iota(rows).unsqueeze(1)
        if attn_mask is not None:
            hides = attn_mask.dtype is dtypes.bool
            scores = attn_mask.where(scores, -math.inf) if hides else scores + attn_mask
        return scores.softmax(-1).cast(self.dtype)
