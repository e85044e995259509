"""GPT: numbers of tokens -> how likely each token comes next."""

from __future__ import annotations

from math import sqrt
from typing import Protocol

from glassgrad.base.errors import ShapeError
from glassgrad.nn.gpt.activation import ACTIVATIONS
from glassgrad.nn.gpt.config import Config
from glassgrad.nn.gpt.rotation import Rotation, rotated
from glassgrad.nn.linear import Dropout, Embedding, Linear
from glassgrad.nn.normalization import LayerNorm, RMSNorm
from glassgrad.nn.quantised import QuantisedEmbedding
from glassgrad.tensor.tensor import Tensor

SPREAD = 0.02  # of the weights at the beginning, as in GPT-2, which is
WIDTH = 768  # wide; narrower models begin with larger weights, and learn faster


class Sight(Protocol):
    """What tokens see: where they stand, and which keys and values there are."""

    def positions(self, count: int) -> Tensor:
        """The places of so many tokens: (T,), or (B, T)."""

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, window: int = 0) -> Tensor:
        """Queries (B, H, T, D) look at keys and values (B, K, T, D): (B, H, T, D).

        Each sees as many places as the window has, its own and those before it; 0: all of them.
        """


class Causal:
    """All tokens at once; each sees itself and those before it."""

    def positions(self, count: int) -> Tensor:
        return Tensor.arange(count)

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, window: int = 0) -> Tensor:
        is_shared, count = q.shape[1] != k.shape[1], q.shape[2]
        if not window or window >= count:
            return q.scaled_dot_product_attention(k, v, is_causal=True, enable_gqa=is_shared)
        columns = Tensor.arange(count)
        rows = columns.unsqueeze(1)
        mask = (columns <= rows) & (columns > rows - window)
        return q.scaled_dot_product_attention(k, v, mask, enable_gqa=is_shared)


class Attention:
    """Every token takes from the tokens before it what its query asks for."""

    def __init__(self, config: Config, number: int) -> None:
        self.config, self.number = config, number
        heads = config.heads + 2 * config.kv_heads
        has_bias = config.has_bias or config.has_qkv_bias
        self.qkv = Linear(config.width, heads * config.head_width, has_bias)
        has_bias = config.has_bias or config.has_out_bias
        self.out = Linear(config.heads * config.head_width, config.width, has_bias)
        self.window, self.score_factor = config.window(number), config.score_factor(number)

    def __call__(self, x: Tensor, sight: Sight, rotation: Rotation | None) -> Tensor:
        config = self.config
        batch, count, _ = x.shape
        split = self.qkv(x).reshape(batch, count, -1, config.head_width).transpose(1, 2)
        q, k, v = split.split([config.heads, config.kv_heads, config.kv_heads], 1)
        if rotation is not None:
            q, k = rotated(q, rotation), rotated(k, rotation)
        q = q if self.score_factor == 1 else q * self.score_factor
        seen = sight.attend(self.number, q, k, v, self.window)  # (B, H, T, D)
        return self.out(seen.transpose(1, 2).reshape(batch, count, -1))


class Feed:
    """Each token by itself: wider, bent, and narrow again."""

    def __init__(self, config: Config) -> None:
        has_bias = config.has_bias or config.has_feed_bias
        self.activation = ACTIVATIONS[config.activation]
        self.up = Linear(config.width, config.hidden, has_bias)
        self.gate = Linear(config.width, config.hidden, has_bias) if config.is_gated else None
        self.down = Linear(config.hidden, config.width, has_bias)

    def __call__(self, x: Tensor) -> Tensor:
        if self.gate is None:
            return self.down(self.activation(self.up(x)))
        return self.down(self.activation(self.gate(x)) * self.up(x))


class Layer:
    """Attention and then the feed, each behind a norm and added to what there was."""

    def __init__(self, config: Config, number: int) -> None:
        self.attention_norm, self.attention = _norm(config), Attention(config, number)
        self.feed_norm, self.feed = _norm(config), Feed(config)
        self.dropout = Dropout(config.dropout)

    def __call__(self, x: Tensor, sight: Sight, rotation: Rotation | None) -> Tensor:
        x = x + self.dropout(self.attention(self.attention_norm(x), sight, rotation))
        return x + self.dropout(self.feed(self.feed_norm(x)))


class GPT:
    """A language model.

    >>> model = GPT(Config(vocab_size=10, context=8, layers=1, heads=2, width=4))
    >>> model(Tensor([[1, 2, 3]])).shape
    (1, 3, 10)
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.tokens: Embedding | QuantisedEmbedding = Embedding(config.vocab_size, config.width)
        self.places = None if config.is_rotary else Embedding(config.context, config.width)
        self.layers = [Layer(config, number) for number in range(config.layers)]
        self.norm = _norm(config)
        self.head = None if config.is_tied else Linear(config.width, config.vocab_size, bias=False)
        self._begin()

    def __call__(self, tokens: Tensor) -> Tensor:
        """Logits (B, T, V) of what comes behind each of the tokens (B, T)."""
        if tokens.ndim != 2 or tokens.shape[1] > self.config.context:
            raise ShapeError(
                f"tokens are (batch, up to {self.config.context} places), not {tokens.shape}"
            )
        return self.logits(self.states(tokens, Causal()))

    def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """How unexpected the targets (B, T) are, in nats per token."""
        return self(tokens).sparse_categorical_crossentropy(targets)

    def states(self, tokens: Tensor, sight: Sight) -> Tensor:
        """What the last layer says of each token: (B, T, C)."""
        x = self.tokens(tokens)
        positions = sight.positions(tokens.shape[1])
        rotation = None
        if self.places is not None:
            x = x + self.places(positions)
        else:
            rotation = Rotation.at(positions, self.config)
        for layer in self.layers:
            x = layer(x, sight, rotation)
        return self.norm(x)

    def logits(self, states: Tensor) -> Tensor:
        """States (…, C) -> logits (…, V)."""
        if self.head is not None:
            return self.head(states)
        if isinstance(self.tokens, QuantisedEmbedding):
            return self.tokens.blocks.times(states)
        return states.linear(self.tokens.weight.transpose())

    def _begin(self) -> None:
        """Small weights; smaller ones where layers add up."""
        config = self.config
        spread = SPREAD * sqrt(WIDTH / config.width)
        linears = [self.head] if self.head is not None else []
        for layer in self.layers:
            feed, attention = layer.feed, layer.attention
            linears += [attention.qkv, feed.up, *([feed.gate] if feed.gate is not None else [])]
            for last in (attention.out, feed.down):
                last.weight = _normal(last.weight, spread / sqrt(2 * config.layers))
        for linear in linears:
            linear.weight = _normal(linear.weight, spread)
        for layer in self.layers:
            feed, attention = layer.feed, layer.attention
            for one in (attention.qkv, attention.out, feed.up, feed.gate, feed.down):
                if one is None:
                    continue
                one.bias = None if one.bias is None else Tensor.zeros(*one.bias.shape)
        for table in (self.tokens, self.places):
            if isinstance(table, Embedding):
                table.weight = _normal(table.weight, spread)


def _norm(config: Config) -> LayerNorm | RMSNorm:
    return (LayerNorm if config.has_bias else RMSNorm)(config.width, config.eps)


def _normal(like: Tensor, spread: float) -> Tensor:
    return Tensor.normal(*like.shape, std=spread)
