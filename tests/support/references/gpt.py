"""What a GPT computes, written again in NumPy from its tensors by name."""

from __future__ import annotations

from collections.abc import Callable
from math import erf, sqrt
from typing import Any

import numpy as np

from glassgrad import Tensor
from glassgrad.nn.gpt import GPT, Config
from glassgrad.nn.state import get_state_dict

Array = np.ndarray[Any, Any]
TINY = {
    "gpt2": Config(vocab_size=50, context=40, layers=2, heads=2, width=16),
    "llama": Config(
        family="llama", vocab_size=50, context=40, layers=2, heads=4, kv_heads=2, width=16,
        hidden=24, is_tied=False,
    ),
    "qwen": Config(
        family="llama", vocab_size=50, context=40, layers=1, heads=2, width=16, head_width=6,
        hidden=24, has_qkv_bias=True, divisors=(1.0, 1.7, 8.0),
    ),
    "scaled gpt2": Config(
        vocab_size=50, context=40, layers=2, heads=2, width=16, hidden=20, activation="relu",
        is_tied=False, has_scaled_scores=False, has_layer_scales=True,
    ),
    "exact gelu": Config(
        vocab_size=50, context=40, layers=2, heads=2, width=16, activation="gelu",
        has_layer_scales=True,
    ),
    "windows": Config(
        family="llama", vocab_size=50, context=40, layers=3, heads=2, width=16, hidden=24,
        windows=(5, 0, 1), activation="gelu_tanh",
    ),
    "biases": Config(
        family="llama", vocab_size=50, context=40, layers=2, heads=2, kv_heads=1, width=16,
        hidden=24, has_qkv_bias=True, has_out_bias=True, has_feed_bias=True,
    ),
    "partial rotation": Config(
        family="llama", vocab_size=50, context=40, layers=2, heads=2, width=16, hidden=24,
        theta=100.0, rotary_width=4, divisors=(1.0, 3.0), rotary_factor=1.3,
    ),
}  # fmt: skip


def tiny(name: str) -> GPT:
    """A model whose weights are large enough for every part to matter."""
    rng = np.random.default_rng(7)
    model = GPT(TINY[name])
    for tensor in get_state_dict(model).values():
        tensor.assign(Tensor(rng.normal(0, 0.4, tensor.shape).astype(np.float32)))
    Tensor.realize(*get_state_dict(model).values())
    return model


def logits_of(model: GPT, tokens: list[int]) -> Array:
    """(T, V) for one row of tokens, in float64."""
    weights = {name: t.numpy().astype(np.float64) for name, t in get_state_dict(model).items()}
    config, count = model.config, len(tokens)
    x = weights["tokens.weight"][tokens]
    if config.family == "gpt2":
        x = x + weights["places.weight"][:count]
    for number in range(config.layers):
        layer = {
            name.removeprefix(f"layers.{number}."): weight
            for name, weight in weights.items()
            if name.startswith(f"layers.{number}.")
        }
        x = x + attention(norm(x, layer, "attention_norm", config), layer, config, number)
        x = x + feed(norm(x, layer, "feed_norm", config), layer, config)
    x = norm(x, weights, "norm", config)
    return x @ weights.get("head.weight", weights["tokens.weight"]).T


def norm(x: Array, weights: dict[str, Array], name: str, config: Config) -> Array:
    if config.family == "gpt2":
        x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x * x).mean(-1, keepdims=True) + config.eps)
    return x * weights[f"{name}.weight"] + weights.get(f"{name}.bias", 0.0)


def linear(x: Array, weights: dict[str, Array], name: str) -> Array:
    return x @ weights[f"{name}.weight"].T + weights.get(f"{name}.bias", 0.0)


def attention(x: Array, weights: dict[str, Array], config: Config, number: int) -> Array:
    count, width = len(x), config.head_width
    heads = linear(x, weights, "attention.qkv").reshape(count, -1, width)
    q, k, v = np.split(heads, [config.heads, config.heads + config.kv_heads], 1)
    out = []
    for head in range(config.heads):
        shared = head // (config.heads // config.kv_heads)
        one, other = rotate(q[:, head], config), rotate(k[:, shared], config)
        scores = one @ other.T / (sqrt(width) if config.has_scaled_scores else 1)
        scores /= number + 1 if config.has_layer_scales else 1
        scores[np.triu_indices(count, 1)] = -np.inf
        if config.windows and config.windows[number]:
            scores[np.tril_indices(count, -config.windows[number])] = -np.inf
        weights_of_keys = np.exp(scores - scores.max(-1, keepdims=True))
        out.append(weights_of_keys / weights_of_keys.sum(-1, keepdims=True) @ v[:, shared])
    return linear(np.concatenate(out, 1), weights, "attention.out")


def rotate(x: Array, config: Config) -> Array:
    if config.family == "gpt2":
        return x
    half = config.rotary_width // 2
    frequencies = config.theta ** (-np.arange(half) / half) / np.array(
        config.divisors or [1.0] * half
    )
    rotation = config.rotary_factor * np.exp(1j * np.arange(len(x))[:, None] * frequencies)
    found = (x[:, :half] + 1j * x[:, half : 2 * half]) * rotation
    return np.concatenate([found.real, found.imag, x[:, 2 * half :]], 1)


def feed(x: Array, weights: dict[str, Array], config: Config) -> Array:
    up, bent = linear(x, weights, "feed.up"), BENT[config.activation]
    if "feed.gate.weight" in weights:
        return linear(bent(linear(x, weights, "feed.gate")) * up, weights, "feed.down")
    return linear(bent(up), weights, "feed.down")


def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


BENT: dict[str, Callable[[Array], Array]] = {
    "gelu": lambda x: x * 0.5 * (1 + np.vectorize(erf)(x / sqrt(2))),
    "gelu_tanh": gelu,
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "leaky_relu": lambda x: np.where(x < 0, 0.01 * x, x),
    "linear": lambda x: x,
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "quick_gelu": lambda x: x / (1 + np.exp(-1.702 * x)),
    "relu": lambda x: np.maximum(x, 0),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
    "relu6": lambda x: np.clip(x, 0, 6),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "tanh": np.tanh,
}
