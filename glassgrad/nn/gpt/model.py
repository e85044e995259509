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

INITIAL_STD = 0.02  # of the weights, as in GPT-2
REFERENCE_WIDTH = 768  # of GPT-2; narrower models start with larger weights and learn faster


class AttentionSource(Protocol):
    """Positions of tokens, and the keys and values that they attend to."""

    def positions(self, count: int) -> Tensor:
        """The positions of `count` tokens: (T,), or (B, T)."""

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, window: int = 0) -> Tensor:
        """Attention of queries (B, H, T, D) to keys and values (B, K, T, D): (B, H, T, D).

        A window limits each query to that many keys, up to its own; 0: no limit.
        """


class Causal:
    """Causal attention over all tokens at once."""

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
    """Multi-head attention with grouped keys and values, rotary embeddings and windows."""

    def __init__(self, config: Config, number: int) -> None:
        self.config, self.number = config, number
        heads = config.heads + 2 * config.kv_heads
        has_bias = config.has_bias or config.has_qkv_bias
        self.qkv = Linear(config.width, heads * config.head_width, has_bias)
        has_bias = config.has_bias or config.has_out_bias
        self.out = Linear(config.heads * config.head_width, config.width, has_bias)
        self.window, self.score_factor = config.window(number), config.score_factor(number)

    def __call__(self, x: Tensor, source: AttentionSource, rotation: Rotation | None) -> Tensor:
        config = self.config
        batch, count, _ = x.shape
        split = self.qkv(x).reshape(batch, count, -1, config.head_width).transpose(1, 2)
        q, k, v = split.split([config.heads, config.kv_heads, config.kv_heads], 1)
        if rotation is not None:
            q, k = rotated(q, rotation), rotated(k, rotation)
        q = q if self.score_factor == 1 else q * self.score_factor
        attended = source.attend(self.number, q, k, v, self.window)  # (B, H, T, D)
        return self.out(attended.transpose(1, 2).reshape(batch, count, -1))


class FeedForward:
    """The feed-forward network of a layer, gated or not."""

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
    """A pre-norm transformer layer: attention and feed-forward network with residuals."""

    def __init__(self, config: Config, number: int) -> None:
        self.attention_norm, self.attention = _norm(config), Attention(config, number)
        self.feed_norm, self.feed = _norm(config), FeedForward(config)
        self.dropout = Dropout(config.dropout)

    def __call__(self, x: Tensor, source: AttentionSource, rotation: Rotation | None) -> Tensor:
        x = x + self.dropout(self.attention(self.attention_norm(x), source, rotation))
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
        self._initialize()

    def __call__(self, tokens: Tensor) -> Tensor:
        """Logits (B, T, V) of the next token after each of the tokens (B, T)."""
        if tokens.ndim != 2 or tokens.shape[1] > self.config.context:
            raise ShapeError(
                f"tokens must have shape (batch, at most {self.config.context}), not {tokens.shape}"
            )
        return self.logits(self.states(tokens, Causal()))

    def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """The mean cross-entropy of the targets (B, T), in nats per token."""
        return self(tokens).sparse_categorical_crossentropy(targets)

    def states(self, tokens: Tensor, source: AttentionSource) -> Tensor:
        """The normalised output of the last layer: (B, T, C)."""
        x = self.tokens(tokens)
        positions = source.positions(tokens.shape[1])
        rotation = None
        if self.places is not None:
            x = x + self.places(positions)
        else:
            rotation = Rotation.at(positions, self.config)
        for layer in self.layers:
            x = layer(x, source, rotation)
        return self.norm(x)

    def logits(self, states: Tensor) -> Tensor:
        """States (…, C) -> logits (…, V)."""
        if self.head is not None:
            return self.head(states)
        if isinstance(self.tokens, QuantisedEmbedding):
            return self.tokens.blocks.times(states)
        return states.linear(self.tokens.weight.transpose())

    def _initialize(self) -> None:
        """GPT-2's initialisation: smaller weights for layers that add to the residual stream."""
        config = self.config
        std = INITIAL_STD * sqrt(REFERENCE_WIDTH / config.width)
        linears = [self.head] if self.head is not None else []
        for layer in self.layers:
            feed, attention = layer.feed, layer.attention
            linears += [attention.qkv, feed.up, *([feed.gate] if feed.gate is not None else [])]
            for last in (attention.out, feed.down):
                last.weight = _normal(last.weight, std / sqrt(2 * config.layers))
        for linear in linears:
            linear.weight = _normal(linear.weight, std)
        for layer in self.layers:
            feed, attention = layer.feed, layer.attention
            for one in (attention.qkv, attention.out, feed.up, feed.gate, feed.down):
                if one is None:
                    continue
                one.bias = None if one.bias is None else Tensor.zeros(*one.bias.shape)
        for table in (self.tokens, self.places):
            if isinstance(table, Embedding):
                table.weight = _normal(table.weight, std)


def _norm(config: Config) -> LayerNorm | RMSNorm:
    return (LayerNorm if config.has_bias else RMSNorm)(config.width, config.eps)


def _normal(like: Tensor, std: float) -> Tensor:
    return Tensor.normal(*like.shape, std=std)
