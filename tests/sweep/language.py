"""Programs of language models."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from glassgrad import Tensor, nn
from glassgrad.nn.files.gguf_dequantise import FORMATS
from glassgrad.nn.quantised import Blocks, QuantisedEmbedding, QuantisedLinear
from sweep.programs import (
    FLOATS,
    LENGTHS,
    VOCABULARIES,
    WIDTHS,
    family,
    indices,
    memory,
    with_gradients,
)


@family
def linear(rng: Random) -> None:
    rows, inner, outer = rng.choice(LENGTHS), rng.choice(WIDTHS), rng.choice(WIDTHS)
    dtype = rng.choice(FLOATS)
    x, w, b = (
        memory(rows, inner, dtype=dtype),
        memory(outer, inner, dtype=dtype),
        memory(outer, dtype=dtype),
    )
    act = rng.choice((Tensor.relu, Tensor.gelu, Tensor.silu, Tensor.contiguous))
    if rng.random() < 0.5:
        act(x.linear(w.T, b)).realize()
    else:
        with_gradients(act(x.linear(w.T, b)), x, w, b)


@family
def gated_mlp(rng: Random) -> None:
    rows, width = rng.choice(LENGTHS), rng.choice(WIDTHS)
    hidden = rng.choice((width * 2, width * 8 // 3, width * 4))
    x, norm = memory(rows, width), nn.RMSNorm(width)
    up, gate, down = memory(hidden, width), memory(hidden, width), memory(width, hidden)
    y = norm(x)
    (x + ((y @ gate.T).silu() * (y @ up.T)) @ down.T).realize()


@family
def attention(rng: Random) -> None:
    heads, size = rng.choice((1, 2, 8, 12, 32)), rng.choice((1, 16, 32, 64, 80, 96, 128))
    queries = rng.choice(LENGTHS)
    keys = queries if rng.random() < 0.6 else rng.choice(LENGTHS)
    batch, dtype = rng.choice((1, 2, 4)), rng.choice(("float32", "float32", "float16", "bfloat16"))
    q = memory(batch, heads, queries, size, dtype=dtype)
    k, v = (memory(batch, heads, keys, size, dtype=dtype) for _ in range(2))
    is_causal = rng.random() < 0.5 and queries == keys
    mask = None
    if not is_causal and rng.random() < 0.3:
        mask = memory(queries, keys)
    y = q.scaled_dot_product_attention(k, v, attn_mask=mask, is_causal=is_causal)
    if rng.random() < 0.5:
        y.realize()
    else:
        with_gradients(y, q, k, v)


@family
def grouped_attention(rng: Random) -> None:
    """Grouped-query attention of one token or a prompt over a key-value cache."""
    shared, size = rng.choice((1, 2, 8)), rng.choice((64, 128))
    heads, queries, keys = (
        shared * rng.choice((2, 4, 8)),
        rng.choice((1, 5, 64)),
        rng.choice(LENGTHS),
    )
    q, k, v = (
        memory(1, heads, queries, size),
        memory(1, shared, keys, size),
        memory(1, shared, keys, size),
    )
    q.scaled_dot_product_attention(k, v, enable_gqa=True).realize()


@family
def normalisation(rng: Random) -> None:
    rows, width = rng.choice(LENGTHS), rng.choice(WIDTHS)
    x = memory(rows, width, dtype=rng.choice(FLOATS))
    kind = rng.choice((nn.RMSNorm, nn.LayerNorm))
    layer = kind(width)
    if rng.random() < 0.5:
        layer(x).realize()
    else:
        with_gradients(layer(x + x.gelu()), x, layer.weight)


@family
def images_normalised(rng: Random) -> None:
    channels, side, batch = (
        rng.choice((16, 64, 96, 512)),
        rng.choice((7, 14, 28, 56, 112)),
        rng.choice((1, 8, 32)),
    )
    x = memory(batch, channels, side, side)
    kinds: tuple[Any, ...] = (
        nn.BatchNorm, lambda c: nn.GroupNorm(8, c), nn.InstanceNorm, nn.LayerNorm2d,
    )  # fmt: skip
    layer = rng.choice(kinds)(channels)
    with_gradients(layer(x).relu(), x, *([] if layer.weight is None else [layer.weight]))


@family
def logits(rng: Random) -> None:
    """A loss over a vocabulary, its gradient, or both together."""
    rows, size = (
        rng.choice((1, 8, 64, 100, 792, 4096)),
        rng.choice((10, 1000, 3050, 4096, *VOCABULARIES)),
    )
    x, labels = memory(rows, size), indices(rows)
    y = x.log_softmax()
    choice = rng.randrange(5)
    if choice == 0:
        Tensor.realize(y, *y.square().sum().gradient(x))
    elif choice == 1:
        loss = x.cross_entropy(labels)
        Tensor.realize(loss, *loss.gradient(x))
    elif choice == 2:
        Tensor.realize(x.argmax(-1), x.softmax(), x.logsumexp(-1))
    elif choice == 3:
        loss = x.cross_entropy(labels, label_smoothing=0.1)
        Tensor.realize(*loss.gradient(x))
    else:
        with_gradients(x.softmax(rng.choice((0, 1))), x)


@family
def embedding(rng: Random) -> None:
    count, width, rows = rng.choice(VOCABULARIES), rng.choice(WIDTHS[:6]), rng.choice(LENGTHS)
    table, tokens = memory(count, width, dtype=rng.choice(FLOATS[:3])), indices(rows)
    y = table[tokens]
    if rng.random() < 0.5:
        nn.RMSNorm(width)(y).realize()
    else:
        with_gradients(y, table)


@family
def quantised(rng: Random) -> None:
    """A quantised embedding and a quantised product, as in GGUF models."""
    kind = rng.choice([k for k in FORMATS if k in (2, 8, 12, 14)])
    width, rows = rng.choice((2048, 3072, 4096, 5120, 8192)), rng.choice((1, 2, 7, 32, 200))
    block_format = FORMATS[kind]
    table, weights = (
        Blocks(
            kind,
            np.ones((n, width // block_format.block_size, block_format.block_bytes), np.uint8),
        )
        for n in (rng.choice((131, 1000)), rng.choice((64, 512)))
    )
    norm = nn.RMSNorm(width)
    x = QuantisedEmbedding(table)(indices(1, rows))
    y = x + norm(x) * 2
    Tensor.realize(QuantisedLinear(weights)(norm(y)), y)


@family
def rope(rng: Random) -> None:
    batch, heads, length = rng.choice((1, 4)), rng.choice((4, 32)), rng.choice(LENGTHS)
    size = rng.choice((64, 128))
    x, angles = memory(batch, length, heads * size), memory(2048, size // 2)
    y = x.reshape(batch, length, heads, size).transpose(1, 2)
    a, b = y.chunk(2, -1) if rng.random() < 0.5 else (y[..., ::2], y[..., 1::2])
    cos, sin = angles[:length].cos(), angles[:length].sin()
    rotated = Tensor.cat(a * cos - b * sin, a * sin + b * cos, dim=-1)
    rotated.transpose(1, 2).reshape(batch, length, heads * size).contiguous().realize()


@family
def cache_write(rng: Random) -> None:
    """Write keys and values to a cache, and read it."""
    heads, size, length = rng.choice((2, 8)), rng.choice((64, 128)), rng.choice((128, 1024))
    position = rng.randrange(length - 5)
    store, new = memory(2, 1, heads, length, size), memory(2, 1, heads, rng.choice((1, 5)), size)
    store[:, :, :, position : position + new.shape[3]] = new
    (store[0].sum(-1) + store[1].max(-1)).realize()
