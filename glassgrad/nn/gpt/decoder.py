"""Decoder: a model that remembers what it read, token by token; one capture serves every place.

Keys and values are kept in memory as long as the context. Prompts are read in blocks of two sizes;
places of a last block that no token is left for are written again before they are seen.
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

LARGE, SMALL = 128, 32  # tokens of a prompt that are read at once
USUAL_CONTEXT = 4096  # models that see more are given memory for this much, unless asked


class Memory:
    """A Sight on everything that was read: keys and values of each layer, (2, B, K, places, D)."""

    def __init__(self, model: GPT, batch: int, context: int) -> None:
        config = model.config
        shape = (2, batch, config.kv_heads, context + LARGE, config.head_width)
        self.layers = [Tensor.zeros(*shape).contiguous() for _ in range(config.layers)]
        Tensor.realize(*self.layers)
        self.last_place = config.context - 1

    def sight(self, first: Tensor, at: Any, count: int) -> Remembered:
        return Remembered(self, first, at, count)


class Remembered:
    """Tokens from place `at` on, of rows that begin at place `first` (B,)."""

    def __init__(self, memory: Memory, first: Tensor, at: Any, count: int) -> None:
        self.memory, self.at, self.end = memory, at, at + count
        rows, columns = (Tensor.arange(count) + at).unsqueeze(1), Tensor.arange(self.end)
        begin = first.reshape(-1, 1, 1, 1)
        self.rows, self.columns, self.first = rows, columns, first
        # Places before the first see themselves: a softmax of nothing would be no number.
        self.mask = (columns <= rows) & ((columns >= begin) | (columns == rows))

    def positions(self, count: int) -> Tensor:
        places: Tensor = self.rows.reshape(1, count) - self.first.unsqueeze(1)
        return places.clip(0, self.memory.last_place)

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, window: int = 0) -> Tensor:
        kept = self.memory.layers[layer]
        kept[:, :, :, self.at : self.end].assign(Tensor.stack(k, v).cast(kept.dtype))
        keys, values = kept[0][:, :, : self.end], kept[1][:, :, : self.end]
        is_shared = q.shape[1] != k.shape[1]
        mask = self.mask if not window else self.mask & (self.columns > self.rows - window)
        return q.scaled_dot_product_attention(keys, values, mask, enable_gqa=is_shared)


class Decoder:
    """Reads prompts, then one token per row at a time; each time it says what may come next.

    >>> from glassgrad.nn.gpt.config import Config
    >>> decoder = Decoder(GPT(Config(vocab_size=10, context=8, layers=1, heads=2, width=4)))
    >>> decoder.read([[1, 2, 3]]).shape, decoder.step([4]).shape, decoder.place
    ((1, 10), (1, 10), 4)
    """

    def __init__(self, model: GPT, batch: int = 1, context: int | None = None) -> None:
        self.model, self.batch = model, batch
        self.context = min(context or USUAL_CONTEXT, model.config.context)
        self.memory = Memory(model, batch, self.context)
        self.place = 0  # how many tokens were read
        self._at = Variable("at", 0, self.context - 1)
        self._last = {size: Variable(f"last{size}", 0, size - 1) for size in (LARGE, SMALL)}
        self._first = Tensor([0] * batch, requires_grad=False)
        self._blocks = {size: TinyJit(self._read_block) for size in (LARGE, SMALL)}
        self._single = TinyJit(self._read_single)

    def read(self, prompts: Sequence[Sequence[int]]) -> np.ndarray[Any, Any]:
        """Forget everything, and read prompts; logits (B, V) of what comes next."""
        import numpy as np

        longest = max((len(prompt) for prompt in prompts), default=0)
        if len(prompts) != self.batch or not all(prompts) or longest > self.context:
            raise ShapeError(
                f"{len(prompts)} prompts of up to {longest} tokens do not fit",
                hint=f"pass {self.batch} prompts of 1 to {self.context} tokens",
            )
        tokens = np.zeros((self.batch, longest + LARGE), np.int32)
        for row, prompt in zip(tokens, prompts, strict=True):
            row[longest - len(prompt) : longest] = prompt
        gaps = [longest - len(prompt) for prompt in prompts]
        self._first = Tensor(gaps, requires_grad=False).realize()
        self.place = 0
        while self.place < longest:
            left = longest - self.place
            size = LARGE if left > 2 * SMALL else SMALL
            block = Tensor(np.ascontiguousarray(tokens[:, self.place : self.place + size]))
            last = self._last[size].bind(min(left, size) - 1)
            logits = self._blocks[size](block, self._first, self._at.bind(self.place), last)
            self.place += min(left, size)
        return np.asarray(logits.numpy())

    def step(self, tokens: Sequence[int]) -> np.ndarray[Any, Any]:
        """Read one more token of each row."""
        import numpy as np

        if self.place >= self.context:
            raise ShapeError(f"the context of {self.context} tokens is full")
        column = Tensor(np.asarray(tokens, np.int32).reshape(self.batch, 1))
        logits = self._single(column, self._first, self._at.bind(self.place))
        self.place += 1
        return np.asarray(logits.numpy())

    def _read_block(self, tokens: Tensor, first: Tensor, at: Any, last: Any) -> Tensor:
        sight = self.memory.sight(first, at, int(tokens.shape[1]))
        states = self.model.states(tokens, sight)[:, last]
        return self.model.logits(states).realize(*self.memory.layers)

    def _read_single(self, tokens: Tensor, first: Tensor, at: Any) -> Tensor:
        states = self.model.states(tokens, self.memory.sight(first, at, 1))[:, 0]
        return self.model.logits(states).realize(*self.memory.layers)
