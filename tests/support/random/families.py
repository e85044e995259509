"""A random.Random -> work of one family on odd shapes, as glassgrad and as NumPy do it.

A case is inputs, a function of tensors, what it must give (in float64 where that is exacter), and
how far off each element may be: a few units in the last place of what was summed, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
EPSILON = float(np.finfo(np.float32).eps)
SIZES = (1, 2, 3, 5, 7, 8, 9, 13, 16, 17, 31, 33, 48, 61, 64, 65, 97, 128)


class Case(NamedTuple):
    inputs: list[Array]
    compute: Callable[..., Any]
    want: Array
    bound: Array | float


def numbers(rng: Random, *shape: int) -> Array:
    return np.random.default_rng(rng.randrange(1 << 30)).standard_normal(shape).astype(np.float32)


def wide(x: Array) -> Array:
    return x.astype(np.float64)


def summed(terms: int, sizes: Array) -> Array:
    """The error of a sum in any order: at most a unit for each term, of the sum of their sizes."""
    return (terms + 2) * EPSILON * sizes + 1e-30


def matmul(rng: Random) -> Case:
    m, k, n = (rng.choice(SIZES) for _ in range(3))
    batch = rng.choice([(), (), (3,), (2, 1)])
    left, right = rng.random() < 0.5, rng.random() < 0.5
    a = numbers(rng, *batch, *((k, m) if left else (m, k)))
    b = numbers(rng, *((n, k) if right else (k, n)))
    one, two = (a.swapaxes(-1, -2) if left else a), (b.T if right else b)

    def compute(x: Any, y: Any) -> Any:
        return (x.transpose(-1, -2) if left else x) @ (y.T if right else y)

    return Case([a, b], compute, wide(one) @ wide(two), summed(k, np.abs(one) @ np.abs(two)))


def convolution(rng: Random) -> Case:
    groups = rng.choice([1, 1, 2, 3])
    channels, outputs = groups * rng.choice([1, 2, 5]), groups * rng.choice([1, 3, 8])
    size, padding, stride = rng.choice([1, 2, 3, 5]), rng.randrange(3), rng.choice([1, 2, 3])
    height, width = (max(size, rng.choice([7, 9, 14, 16, 28, 33])) for _ in range(2))
    x = numbers(rng, rng.choice([1, 2, 3]), channels, height, width)
    w = numbers(rng, outputs, channels // groups, size, size)

    def reference(x: Array, w: Array) -> Array:
        around = ((0, 0), (0, 0), (padding, padding), (padding, padding))
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, around), (size, size), (2, 3))
        windows = windows[:, :, ::stride, ::stride]
        parts = zip(np.split(windows, groups, 1), np.split(w, groups, 0), strict=True)
        return np.concatenate([np.einsum("ncyxij,ocij->noyx", a, b) for a, b in parts], 1)

    sizes = reference(np.abs(wide(x)), np.abs(wide(w)))
    bound = summed(w[0].size, sizes)
    options = {"groups": groups, "padding": padding, "stride": stride}
    return Case([x, w], lambda x, w: x.conv2d(w, **options), reference(wide(x), wide(w)), bound)


def pooling(rng: Random) -> Case:
    size, stride = rng.choice([2, 3]), rng.choice([1, 2, 3])
    padding = rng.randrange(2)
    x = numbers(rng, 2, rng.choice([1, 3]), rng.choice([7, 16, 33]), rng.choice([9, 28, 56, 65]))
    around = ((0, 0), (0, 0), (padding, padding), (padding, padding))
    padded = np.pad(x, around, constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), (2, 3))
    want = windows[:, :, ::stride, ::stride].max((-1, -2))
    return Case([x], lambda x: x.max_pool2d(size, stride, padding=padding), want, 0.0)


def rows(rng: Random) -> Case:
    x = numbers(rng, rng.choice(SIZES), rng.choice((*SIZES, 300, 1025))) * 3
    y = wide(x)
    powers = np.exp(y - y.max(-1, keepdims=True))
    total = powers.sum(-1, keepdims=True)
    kinds: list[tuple[Callable[[Any], Any], Array]] = [
        (lambda x: x.softmax(), powers / total),
        (lambda x: x.log_softmax(), y - y.max(-1, keepdims=True) - np.log(total)),
        (lambda x: x.logsumexp(-1), np.log(total[:, 0]) + y.max(-1)),
        (lambda x: x.mean(-1), y.mean(-1)),
        (lambda x: x.argmax(-1), y.argmax(-1)),
        (
            lambda x: x.layernorm(eps=1e-5),
            (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-5),
        ),
    ]
    compute, want = rng.choice(kinds)
    return Case([x], compute, want, 1e-4 + 1e-5 * np.abs(want))


def attention(rng: Random) -> Case:
    batch, heads, depth = rng.choice([1, 2]), rng.choice([1, 3]), rng.choice([4, 8, 17, 64])
    queries, keys = rng.choice([1, 5, 16, 33, 70]), rng.choice([3, 16, 33, 65, 130])
    q = numbers(rng, batch, heads, queries, depth)
    k, v = numbers(rng, batch, heads, keys, depth), numbers(rng, batch, heads, keys, depth)
    scores = wide(q) @ wide(k).swapaxes(-1, -2) / np.sqrt(depth)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ wide(v)
    return Case([q, k, v], lambda q, k, v: q.scaled_dot_product_attention(k, v), want, 2e-5)


def scans(rng: Random) -> Case:
    x = numbers(rng, rng.choice(SIZES), rng.choice((*SIZES, 1000)))
    axis = rng.randrange(2)
    if rng.random() < 0.3:
        return Case([x], lambda x: x.cummax(axis)[0], np.maximum.accumulate(x, axis), 0.0)
    sizes = np.abs(wide(x)).cumsum(axis)
    return Case([x], lambda x: x.cumsum(axis), wide(x).cumsum(axis), summed(x.shape[axis], sizes))


def sorts(rng: Random) -> Case:
    x = numbers(rng, rng.choice([1, 3, 8, 9, 17]), rng.choice([1, 2, 5, 31, 64, 65, 130])).round(1)
    kind = rng.randrange(3)
    if kind == 0:
        return Case([x], lambda x: x.sort()[0], np.sort(x), 0.0)
    if kind == 1:
        return Case([x], lambda x: x.argsort(), np.argsort(x, kind="stable"), 0.0)
    k = rng.randint(1, x.shape[1])
    return Case([x], lambda x: x.topk(k)[0], -np.sort(-x)[:, :k], 0.0)


def lookups(rng: Random) -> Case:
    x = numbers(rng, rng.choice(SIZES), rng.choice(SIZES))
    at = np.array([rng.randrange(len(x)) for _ in range(rng.choice(SIZES))], np.int32)
    if rng.random() < 0.5:
        return Case([x, at], lambda x, at: x[at], x[at], 0.0)
    want, sizes = np.zeros(x.shape), np.zeros(x.shape)
    np.add.at(want, at, 1.0)
    np.add.at(sizes, at, 1.0)

    def gradient(x: Any, at: Any) -> Any:
        return x[at].sum().gradient(x)[0]

    return Case([x, at], gradient, want, summed(len(at), sizes))


def movement(rng: Random) -> Case:
    x = numbers(rng, *(rng.choice(SIZES[:14]) for _ in range(3)))
    order = rng.sample(range(3), 3)
    axis, before = rng.randrange(3), rng.randrange(3)
    around = tuple((before, 1) if i == axis else (0, 0) for i in range(3))
    want = np.pad(np.flip(x.transpose(order), axis), around) * 2
    return Case([x], lambda x: x.permute(*order).flip(axis).pad(around) * 2, want, 0.0)


FAMILIES: dict[str, Callable[[Random], Case]] = {
    family.__name__: family
    for family in (
        matmul, convolution, pooling, rows, attention, scans, sorts, lookups, movement,
    )
}  # fmt: skip
