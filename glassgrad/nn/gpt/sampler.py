"""Sampler: logits -> tokens, drawn by their likelihood, some of the unlikely ones left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from glassgrad.base.errors import SettingError

if TYPE_CHECKING:
    import numpy as np


class Sampler:
    """Draws one token per row.

    A temperature of 0 takes the likeliest token, higher ones are bolder. `top_k` keeps so many of
    the likeliest, `top_p` the likeliest that together have this probability. Equal seeds draw equal
    tokens.
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
            raise SettingError(f"a temperature is a number from 0 on, not {temperature}")
        if top_k is not None and top_k < 1:
            raise SettingError(f"top_k is at least 1, not {top_k}")
        if top_p is not None and not 0 < top_p <= 1:
            raise SettingError(f"top_p lies above 0 and up to 1, not {top_p}")
        self.temperature, self.top_k, self.top_p = temperature, top_k, top_p
        self.random = np.random.default_rng(seed)

    def __call__(self, logits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Tokens (B,) for logits (B, V)."""
        import numpy as np

        if not self.temperature:
            return np.asarray(logits.argmax(-1))
        chances = self.random.random(len(logits))
        rows = zip(logits, chances, strict=True)
        return np.array([self._drawn(row, chance) for row, chance in rows], np.int64)

    def _drawn(self, logits: np.ndarray[Any, Any], chance: float) -> int:
        """The first token whose running sum of probabilities passes the chance."""
        import numpy as np

        order = np.arange(len(logits))
        if self.top_k is not None and self.top_k < len(logits):
            order = np.argpartition(logits, -self.top_k)[-self.top_k :]
        chosen = logits[order].astype(np.float64)
        weights = np.exp((chosen - chosen.max()) / self.temperature)
        if self.top_p is not None:
            falling = np.argsort(-weights, kind="stable")
            order, weights = order[falling], weights[falling]
            before = (weights.cumsum() - weights) / weights.sum()
            weights = np.where(before < self.top_p, weights, 0.0)
        sums = weights.cumsum()
        place = int(np.searchsorted(sums, chance * sums[-1], side="right"))
        return int(order[min(place, int(np.flatnonzero(weights)[-1]))])
