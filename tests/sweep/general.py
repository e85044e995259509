"""Programs of dtypes, reductions, movement, writes, indexing, random numbers and optimizers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import prod
from random import Random
from typing import Any

from glassgrad import Tensor, nn
from glassgrad.nn.optim import LAMB, SGD, Adam, AdamW, Muon, RMSprop, clip_grad_norm_
from sweep.programs import (
    ALL_DTYPES,
    family,
    indices,
    memory,
)

MAX_ELEMENTS = 1 << 28  # of one input of a reduction: 1 GiB


@family
def dtypes_of_all_kinds(rng: Random) -> None:
    """Casts from one dtype to another, arithmetic and reductions."""
    one, two = rng.choice(ALL_DTYPES), rng.choice(ALL_DTYPES)
    x = memory(rng.choice((3, 65, 1000)), rng.choice((1, 64, 777)), dtype=one)
    y = x.cast(two)
    axis = rng.choice((0, 1, None))
    candidates = [
        y,
        x.max(axis),
        x.min(axis),
        x.sum(axis),
        x.argmax(axis),
        (x + x) * x,
        x == x.flip(0),
    ]
    Tensor.realize(*rng.sample(candidates, 3))


@family
def product_of_dtypes(rng: Random) -> None:
    dtype = rng.choice([d for d in ALL_DTYPES if d != "bool"])
    n, k, m = (rng.choice((1, 7, 64, 130, 1024)) for _ in range(3))
    x, w = memory(n, k, dtype=dtype), memory(k, m, dtype=dtype)
    rng.choice((x @ w, (x @ w).float() * 0.5, (x @ w).max(-1))).realize()


@family
def reductions(rng: Random) -> None:
    shape: tuple[int, ...] = ()
    while not shape or prod(shape) > MAX_ELEMENTS:
        shape = tuple(
            [rng.choice((1, 2, 3, 17, 64, 300, 1024)) for _ in range(rng.randrange(1, 5))]
        )
    x = memory(*shape)
    axis = tuple(sorted(rng.sample(range(len(shape)), rng.randrange(1, len(shape) + 1))))
    y = x.permute(*rng.sample(range(len(shape)), len(shape)))
    candidates = [
        y.sum(axis), y.max(axis), y.mean(axis), y.var(axis), y.prod(axis), y.std(axis),
        y.logsumexp(axis), (y - y.mean(axis, keepdim=True)).exp(), y.sum(axis).unsqueeze(0),
    ]  # fmt: skip
    Tensor.realize(*rng.sample(candidates, rng.randrange(1, 4)))


@family
def movement(rng: Random) -> None:
    a, b, c = (rng.choice((1, 2, 5, 16, 63, 128)) for _ in range(3))
    x = memory(a, b, c)
    steps: list[Callable[[Tensor], Tensor]] = [
        lambda t: t.permute(*rng.sample(range(t.ndim), t.ndim)),
        lambda t: t.pad(tuple([(rng.randrange(3), rng.randrange(3)) for _ in range(t.ndim)])),
        lambda t: t.flip(rng.randrange(t.ndim)),
        lambda t: t.reshape(-1, t.shape[-1]),
        lambda t: t.roll(rng.randrange(5), rng.randrange(t.ndim)),
        lambda t: t[tuple([slice(None, None, rng.choice((1, 2)))] * t.ndim)],
        lambda t: t * 2 + 1,
        lambda t: Tensor.cat(t, t * 3, dim=rng.randrange(t.ndim)),
        lambda t: t.sum(rng.randrange(t.ndim), keepdim=True) + t,
    ]
    for _ in range(rng.randrange(2, 7)):
        x = rng.choice(steps)(x)
    x.contiguous().realize()


@family
def writes(rng: Random) -> None:
    n, m = rng.choice((5, 64, 1000)), rng.choice((3, 64, 257))
    x, y = memory(n, m), memory(n, m)
    split = rng.randrange(1, n)
    choice = rng.randrange(5)
    if choice == 0:
        x[:split] = y[:split] * 2
    elif choice == 1:
        x[::2] += x[1 : 2 * (n // 2) : 2].sum(0)
    elif choice == 2:
        x[:, 0] = x[:, 1] + y.sum(1)
    elif choice == 3:
        x += x.flip(0)
    else:
        x[indices(7)] = y[0]
    Tensor.realize(x, x.sum(0))


@family
def indexing(rng: Random) -> None:
    n, m = rng.choice((64, 1000, 5000)), rng.choice((1, 16, 257))
    x, index = memory(n, m), indices(rng.choice((3, 100)))
    matrix = indices(7, m)
    candidates = [
        lambda: x[index], lambda: x.gather(0, matrix), lambda: x.scatter(0, matrix, memory(7, m)),
        lambda: x.scatter_reduce(0, matrix, memory(7, m), "sum"), lambda: x[:, index % m],
        lambda: index.one_hot(200).float() @ memory(200, m),
        lambda: x.sort(0)[0] if n < 2000 else x, lambda: x.topk(3, 0)[1] if n < 2000 else x,
        lambda: x.cumsum(0), lambda: x.cumprod(0), lambda: x.cummax(0)[0],
    ]  # fmt: skip
    rng.choice(candidates)().realize()


@family
def random_numbers(rng: Random) -> None:
    n, k, m = rng.choice((1, 64, 200, 1000)), rng.choice((1, 3, 10, 64)), rng.choice((1, 3, 64))
    candidates: list[Callable[[], Tensor]] = [
        lambda: Tensor.randn(n, k) @ Tensor.randn(k, m),
        lambda: Tensor.rand(n, k).softmax(),
        lambda: (Tensor.randn(n, k) @ memory(k, m)).relu().sum(0),
        lambda: Tensor.randint(n, k, high=10).float().mean(0),
        lambda: Tensor.kaiming_uniform(n, k) @ memory(k, m),
        lambda: memory(n, k).dropout(0.3),
        lambda: Tensor.randn(n, k).T @ Tensor.randn(n, m),
    ]
    rng.choice(candidates)().realize()


@family
def optimiser(rng: Random) -> None:
    params = [
        memory(
            *[rng.choice((1, 3, 64, 768, 1000)) for _ in range(rng.randrange(1, 3))],
            requires_grad=True,
        )
        for _ in range(rng.randrange(1, 5))
    ]
    kind = rng.choice((SGD, Adam, AdamW, LAMB, RMSprop, Muon))
    if kind is Muon:
        params = [memory(rng.choice((64, 256)), rng.choice((64, 128)), requires_grad=True)]
    settings: dict[str, Any] = {"momentum": 0.9} if kind is SGD else {}
    optimizer = kind(params, lr=0.01, **settings)
    optimizer.zero_grad()
    loss = params[0].square().mean()
    for p in params[1:]:
        loss = loss + (p * 2).exp().mean()
    loss.backward()
    if rng.random() < 0.5:
        clip_grad_norm_(params, 1.0)
    optimizer.step()


@family
def perceptron(rng: Random) -> None:
    """Networks with one output, whose kernels have unusual shapes."""
    sizes = [rng.choice((1, 3, 13, 64, 128, 784)) for _ in range(rng.randrange(2, 5))]
    x = memory(rng.choice((1, 32, 64, 256, 1000)), sizes[0])
    layers: list[Any] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), rng.choice((Tensor.relu, Tensor.tanh, Tensor.gelu))]
    loss = x.sequential(layers[:-1]).square().mean()
    loss.backward()
    optimizer = AdamW(nn.state.get_parameters(layers), lr=0.01)
    optimizer.step()
