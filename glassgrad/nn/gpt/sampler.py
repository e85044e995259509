"""Sampler: logits -> tokens, by temperature, top-k and top-p."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from glassgrad.base.errors import SettingError

if TYPE_CHECKING:
    import numpy as np


class Sampler:
    """Draws one token per row.

    Temperature 0 takes the most likely token. `top_k` keeps that many of the most likely tokens,
    `top_p` the most likely ones whose probabilities add up to it. Equal seeds draw equal tokens.
    """

    def __init__(
        self,
        temperature: float = 0.8,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> None:
        import numpy as np

        if not 0 <= temperature < float("inf"):
            raise SettingError(f"temperature must be a non-negative number, not {temperature}")
        if top_k is not None and top_k < 1:
            raise SettingError(f"top_k must be at least 1, not {top_k}")
        if top_p is not None and not 0 < top_p <= 1:
            raise SettingError(f"top_p must be in (0, 1], not {top_p}")
        self.temperature, self.top_k, self.top_p = temperature, top_k, top_p
        self.random = np.random.default_rng(seed)

    def __call__(self, logits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Tokens (B,) for logits (B, V)."""
        import numpy as np

        if not self.temperature:
            return np.asarray(logits.argmax(-1))
        uniforms = self.random.random(len(logits))
        rows = zip(logits, uniforms, strict=True)
        return np.array([self._draw(row, uniform) for row, uniform in rows], np.int64)

    def _draw(self, logits: np.ndarray[Any, Any], uniform: float) -> int:
        """Inverse-transform sampling with a number from 0 to 1."""
        import numpy as np

        order = np.arange(len(logits))
        if self.top_k is not None and self.top_k < len(logits):
            order = np.argpartition(logits, -self.top_k)[-self.top_k :]
        chosen = logits[order].astype(np.float64)
        weights = np.exp((chosen - np.max(chosen)) / self.temperature)
        if self.top_p is not None:
            descending = np.argsort(-weights, kind="stable")
            order, weights = order[descending], weights[descending]
            before = (weights.cumsum() - weights) / weights.sum()
            weights = np.where(before < self.top_p, weights, 0.0)
        sums = weights.cumsum()
        index = int(np.searchsorted(sums, uniform * sums[-1], side="right"))
        return int(order[min(index, int(np.flatnonzero(weights)[-1]))])
