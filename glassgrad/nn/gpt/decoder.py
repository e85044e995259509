"""Decoder: incremental decoding with a key-value cache; one capture serves every position.

The cache has the length of the context. Prompts are read in blocks of two sizes; unused positions
of the last block are overwritten before any query attends to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from glassgrad.base.errors import ShapeError
from glassgrad.ir.symbolic import Variable
from glassgrad.nn.gpt.model import GPT
from glassgrad.tensor.jit.function import TinyJit
from glassgrad.tensor.tensor import Tensor

if TYPE_CHECKING:
    import numpy as np

LARGE, SMALL = 128, 32  # block sizes in tokens for reading prompts
MAX_DEFAULT_CONTEXT = 4096  # tokens; a longer cache must be asked for


class KeyValueCache:
    """Keys and values of each layer, (2, B, K, length, D)."""

    def __init__(self, model: GPT, batch: int, context: int) -> None:
        config = model.config
        shape = (2, batch, config.kv_heads, context + LARGE, config.head_width)
        self.layers = [Tensor.zeros(*shape).contiguous() for _ in range(config.layers)]
        Tensor.realize(*self.layers)
        self.last_position = config.context - 1

    def attention(self, first: Tensor, at: Any, count: int) -> CachedAttention:
        return CachedAttention(self, first, at, count)


class CachedAttention:
    """An AttentionSource for `count` tokens at position `at` of rows that start at `first` (B,)."""

    def __init__(self, cache: KeyValueCache, first: Tensor, at: Any, count: int) -> None:
        self.cache, self.at, self.end = cache, at, at + count
        rows, columns = (Tensor.arange(count) + at).unsqueeze(1), Tensor.arange(self.end)
        begin = first.reshape(-1, 1, 1, 1)
        self.rows, self.columns, self.first = rows, columns, first
        # Positions before the first token attend to themselves: an empty softmax would be nan.
        self.mask = (columns <= rows) & ((columns >= begin) | (columns == rows))

    def positions(self, count: int) -> Tensor:
        positions: Tensor = self.rows.reshape(1, count) - self.first.unsqueeze(1)
        return positions.clip(0, self.cache.last_position)

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, window: int = 0) -> Tensor:
        cached = self.cache.layers[layer]
        cached[:, :, :, self.at : self.end].assign(Tensor.stack(k, v).cast(cached.dtype))
        keys, values = cached[0][:, :, : self.end], cached[1][:, :, : self.end]
        is_shared = q.shape[1] != k.shape[1]
        mask = self.mask if not window else self.mask & (self.columns > self.rows - window)
        return q.scaled_dot_product_attention(keys, values, mask, enable_gqa=is_shared)


class Decoder:
    """Reads prompts, then one token per row at a time; returns the logits of the next token.

    >>> from glassgrad.nn.gpt.config import Config
    >>> decoder = Decoder(GPT(Config(vocab_size=10, context=8, layers=1, heads=2, width=4)))
    >>> decoder.read([[1, 2, 3]]).shape, decoder.step([4]).shape, decoder.position
    ((1, 10), (1, 10), 4)
    """

    def __init__(self, model: GPT, batch: int = 1, context: int | None = None) -> None:
        self.model, self.batch = model, batch
        self.context = min(context or MAX_DEFAULT_CONTEXT, model.config.context)
        self.cache = KeyValueCache(model, batch, self.context)
        self.position = 0  # number of tokens read
        self._at = Variable("at", 0, self.context - 1)
        self._last = {size: Variable(f"last{size}", 0, size - 1) for size in (LARGE, SMALL)}
        self._first = Tensor([0] * batch, requires_grad=False)
        self._blocks = {size: TinyJit(self._read_block) for size in (LARGE, SMALL)}
        self._single = TinyJit(self._read_single)

    def read(self, prompts: Sequence[Sequence[int]]) -> np.ndarray[Any, Any]:
        """Clear the cache and read prompts; returns the logits (B, V) of the next tokens."""
        import numpy as np

        longest = max((len(prompt) for prompt in prompts), default=0)
        if len(prompts) != self.batch or not all(prompts) or longest > self.context:
            raise ShapeError(
                f"cannot read {len(prompts)} prompts of up to {longest} tokens",
                hint=f"pass {self.batch} prompts of 1 to {self.context} tokens",
            )
        tokens = np.zeros((self.batch, longest + LARGE), np.int32)
        for row, prompt in zip(tokens, prompts, strict=True):
            row[longest - len(prompt) : longest] = prompt
        gaps = [longest - len(prompt) for prompt in prompts]
        self._first = Tensor(gaps, requires_grad=False).realize()
        self.position = 0
        while self.position < longest:
            left = longest - self.position
            size = LARGE if left > 2 * SMALL else SMALL
            block = Tensor(np.ascontiguousarray(tokens[:, self.position : self.position + size]))
            last = self._last[size].bind(min(left, size) - 1)
            logits = self._blocks[size](block, self._first, self._at.bind(self.position), last)
            self.position += min(left, size)
        return np.asarray(logits.numpy())

    def step(self, tokens: Sequence[int]) -> np.ndarray[Any, Any]:
        """Read one more token of each row; returns the logits of the next tokens."""
        import numpy as np

        if self.position >= self.context:
            raise ShapeError(f"the context of {self.context} tokens is full")
        column = Tensor(np.asarray(tokens, np.int32).reshape(self.batch, 1))
        logits = self._single(column, self._first, self._at.bind(self.position))
        self.position += 1
        return np.asarray(logits.numpy())

    def _read_block(self, tokens: Tensor, first: Tensor, at: Any, last: Any) -> Tensor:
        source = self.cache.attention(first, at, int(tokens.shape[1]))
        states = self.model.states(tokens, source)[:, last]
        return self.model.logits(states).realize(*self.cache.layers)

    def _read_single(self, tokens: Tensor, first: Tensor, at: Any) -> Tensor:
        states = self.model.states(tokens, self.cache.attention(first, at, 1))[:, 0]
        return self.model.logits(states).realize(*self.cache.layers)
