"""random.Random -> one program of a family, with sizes that models have."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from glassgrad import Tensor, nn
from glassgrad.base.dtype import dtypes
from glassgrad.nn.files.quantised import FORMATS
from glassgrad.nn.optim import LAMB, SGD, Adam, AdamW, Muon, RMSprop, clip_grad_norm_
from glassgrad.nn.quantised import Blocks, QuantisedEmbedding, QuantisedLinear

WIDTHS = (64, 256, 768, 1024, 2048, 2560, 3072, 4096, 5120, 8192)
LENGTHS = (1, 2, 7, 16, 32, 100, 128, 333, 512, 1024, 2048)
VOCABULARIES = (131, 1000, 32_000, 50_257, 128_256)
FLOATS = ("float32", "float16", "bfloat16", "float64")
ALL_DTYPES = tuple(str(d.name) for d in dtypes.all)
Program = Callable[[Random], None]
FAMILIES: dict[str, Program] = {}


def family(program: Program) -> Program:
    FAMILIES[program.__name__] = program
    return program


def some(*shape: int, dtype: str = "float32", learns: bool = False) -> Tensor:
    """A tensor in memory, which nobody has written."""
    return Tensor.empty(*shape, dtype=dtype, requires_grad=learns or None).realize()


def indices(*shape: int) -> Tensor:
    return some(*shape, dtype="int32")


def with_gradients(result: Tensor, *targets: Tensor) -> None:
    """A value and its gradients, computed together or one after the other."""
    Tensor.realize(result, *result.square().mean().gradient(*targets))


# ---------------------------------------------------------------------- language models


@family
def linear(rng: Random) -> None:
    rows, inner, outer = rng.choice(LENGTHS), rng.choice(WIDTHS), rng.choice(WIDTHS)
    dtype = rng.choice(FLOATS)
    x, w, b = (
        some(rows, inner, dtype=dtype),
        some(outer, inner, dtype=dtype),
        some(outer, dtype=dtype),
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
    x, norm = some(rows, width), nn.RMSNorm(width)
    up, gate, down = some(hidden, width), some(hidden, width), some(width, hidden)
    y = norm(x)
    (x + ((y @ gate.T).silu() * (y @ up.T)) @ down.T).realize()


@family
def attention(rng: Random) -> None:
    heads, size = rng.choice((1, 2, 8, 12, 32)), rng.choice((1, 16, 32, 64, 80, 96, 128))
    queries = rng.choice(LENGTHS)
    keys = queries if rng.random() < 0.6 else rng.choice(LENGTHS)
    batch, dtype = rng.choice((1, 2, 4)), rng.choice(("float32", "float32", "float16", "bfloat16"))
    q = some(batch, heads, queries, size, dtype=dtype)
    k, v = (some(batch, heads, keys, size, dtype=dtype) for _ in range(2))
    is_causal = rng.random() < 0.5 and queries == keys
    mask = None
    if not is_causal and rng.random() < 0.3:
        mask = some(queries, keys)
    y = q.scaled_dot_product_attention(k, v, attn_mask=mask, is_causal=is_causal)
    if rng.random() < 0.5:
        y.realize()
    else:
        with_gradients(y, q, k, v)


@family
def grouped_attention(rng: Random) -> None:
    """Of one new token, or a prompt, over a cache whose heads are shared."""
    shared, size = rng.choice((1, 2, 8)), rng.choice((64, 128))
    heads, queries, keys = (
        shared * rng.choice((2, 4, 8)),
        rng.choice((1, 5, 64)),
        rng.choice(LENGTHS),
    )
    q, k, v = (
        some(1, heads, queries, size),
        some(1, shared, keys, size),
        some(1, shared, keys, size),
    )
    q.scaled_dot_product_attention(k, v, enable_gqa=True).realize()


@family
def normalisation(rng: Random) -> None:
    rows, width = rng.choice(LENGTHS), rng.choice(WIDTHS)
    x = some(rows, width, dtype=rng.choice(FLOATS))
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
    x = some(batch, channels, side, side)
    kinds: tuple[Any, ...] = (
        nn.BatchNorm, lambda c: nn.GroupNorm(8, c), nn.InstanceNorm, nn.LayerNorm2d,
    )  # fmt: skip
    layer = rng.choice(kinds)(channels)
    with_gradients(layer(x).relu(), x, *([] if layer.weight is None else [layer.weight]))


@family
def logits(rng: Random) -> None:
    """A loss over a vocabulary, its gradient, or both in one computation."""
    rows, size = (
        rng.choice((1, 8, 64, 100, 792, 4096)),
        rng.choice((10, 1000, 3050, 4096, *VOCABULARIES)),
    )
    x, labels = some(rows, size), indices(rows)
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
    table, at = some(count, width, dtype=rng.choice(FLOATS[:3])), indices(rows)
    y = table[at]
    if rng.random() < 0.5:
        nn.RMSNorm(width)(y).realize()
    else:
        with_gradients(y, table)


@family
def quantised(rng: Random) -> None:
    """An embedding table and a product, as models of GGUF files have them."""
    kind = rng.choice([k for k in FORMATS if k in (2, 8, 12, 14)])
    width, rows = rng.choice((2048, 3072, 4096, 5120, 8192)), rng.choice((1, 2, 7, 32, 200))
    form = FORMATS[kind]
    table, weights = (
        Blocks(kind, np.empty((n, width // form.numbers, form.nbytes), np.uint8))
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
    x, angles = some(batch, length, heads * size), some(2048, size // 2)
    y = x.reshape(batch, length, heads, size).transpose(1, 2)
    a, b = y.chunk(2, -1) if rng.random() < 0.5 else (y[..., ::2], y[..., 1::2])
    cos, sin = angles[:length].cos(), angles[:length].sin()
    turned = Tensor.cat(a * cos - b * sin, a * sin + b * cos, dim=-1)
    turned.transpose(1, 2).reshape(batch, length, heads * size).contiguous().realize()


@family
def cache_write(rng: Random) -> None:
    """Keys and values written into a cache, which is then read."""
    heads, size, length = rng.choice((2, 8)), rng.choice((64, 128)), rng.choice((128, 1024))
    at = rng.randrange(length - 5)
    store, new = some(2, 1, heads, length, size), some(2, 1, heads, rng.choice((1, 5)), size)
    store[:, :, :, at : at + new.shape[3]] = new
    (store[0].sum(-1) + store[1].max(-1)).realize()


# ---------------------------------------------------------------------- images and sound


@family
def convolution(rng: Random) -> None:
    side = rng.choice((7, 8, 13, 14, 28, 32, 56, 112))
    inner, outer = rng.choice((1, 3, 16, 64, 128, 256)), rng.choice((1, 8, 16, 64, 128, 256))
    size, stride = rng.choice((1, 2, 3, 5, 7)), rng.choice((1, 1, 1, 2))
    dilation = rng.choice((1, 1, 2)) if size > 1 and side > 8 else 1
    groups = inner if rng.random() < 0.2 else 1
    outer = inner * rng.choice((1, 2)) if groups > 1 else outer
    dtype = rng.choice(("float32", "float32", "float16", "bfloat16"))
    x = some(rng.choice((1, 2, 8)), inner, side, side, dtype=dtype)
    w, b = some(outer, inner // groups, size, size, dtype=dtype), some(outer, dtype=dtype)
    padding = rng.choice((0, size // 2, size // 2 * dilation))
    if dilation * (size - 1) + 1 > side + 2 * padding:
        padding = size * dilation
    y = x.conv2d(w, b, groups, stride, dilation, padding).relu()
    if rng.random() < 0.4:
        y.realize()
    else:
        with_gradients(y, x, w, b)


@family
def transposed_convolution(rng: Random) -> None:
    side, inner, outer = rng.choice((4, 7, 16, 64)), rng.choice((3, 16, 64)), rng.choice((1, 3, 64))
    size, stride = rng.choice((2, 3, 4, 5)), rng.choice((1, 2, 3))
    x, w = some(rng.choice((1, 4)), inner, side, side), some(inner, outer, size, size)
    padding = rng.choice((0, 1))
    y = x.conv_transpose2d(
        w, stride=stride, padding=padding, output_padding=rng.choice((0, stride - 1))
    )
    if rng.random() < 0.5:
        y.leaky_relu().realize()
    else:
        with_gradients(y, x, w)


@family
def pooling(rng: Random) -> None:
    side, channels = rng.choice((8, 13, 28, 56, 112, 224)), rng.choice((1, 3, 64))
    x = some(rng.choice((1, 8)), channels, side, side)
    size, stride = rng.choice((2, 3, 5)), rng.choice((1, 2, 3))
    pool = rng.choice((Tensor.max_pool2d, Tensor.avg_pool2d))
    if rng.random() < 0.5:
        with_gradients(pool(x, size, stride), x)
    else:
        scale = rng.choice((2, 3))
        mode = rng.choice(("nearest", "linear"))
        x.interpolate((side * scale, side * scale), mode=mode).realize()


@family
def sound(rng: Random) -> None:
    length = rng.choice((1000, 4000, 16_000, 48_000))
    channels, outer = rng.choice((1, 2, 16, 80)), rng.choice((1, 16, 64))
    size, stride = rng.choice((3, 10, 15, 25)), rng.choice((1, 2, 5, 8))
    x, w = some(rng.choice((1, 4)), channels, length), some(outer, channels, size)
    choice = rng.randrange(4)
    if choice == 0:
        with_gradients(x.conv2d(w, stride=stride, padding=size // 2).gelu(), x, w)
    elif choice == 1:
        frames = x[:, 0].unfold(-1, 400, 160) * some(400)
        (frames @ some(400, 201)).square().log().realize()
    elif choice == 2:
        x.conv_transpose2d(some(channels, outer, size), stride=stride).tanh().realize()
    else:
        Tensor.realize(x.cumsum(-1), x.square().mean(-1).sqrt(), x.max(-1) - x.min(-1))


# ---------------------------------------------------------------------- everything else


@family
def dtypes_of_all_kinds(rng: Random) -> None:
    """Casts, arithmetic and reductions of a dtype, to another one."""
    one, two = rng.choice(ALL_DTYPES), rng.choice(ALL_DTYPES)
    x = some(rng.choice((3, 65, 1000)), rng.choice((1, 64, 777)), dtype=one)
    y = x.cast(two)
    axis = rng.choice((0, 1, None))
    many = [y, x.max(axis), x.min(axis), x.sum(axis), x.argmax(axis), (x + x) * x, x == x.flip(0)]
    Tensor.realize(*rng.sample(many, 3))


@family
def product_of_dtypes(rng: Random) -> None:
    dtype = rng.choice([d for d in ALL_DTYPES if d != "bool"])
    n, k, m = (rng.choice((1, 7, 64, 130, 1024)) for _ in range(3))
    x, w = some(n, k, dtype=dtype), some(k, m, dtype=dtype)
    rng.choice((x @ w, (x @ w).float() * 0.5, (x @ w).max(-1))).realize()


@family
def reductions(rng: Random) -> None:
    shape = tuple([rng.choice((1, 2, 3, 17, 64, 300, 1024)) for _ in range(rng.randrange(1, 5))])
    x = some(*shape)
    axis = tuple(sorted(rng.sample(range(len(shape)), rng.randrange(1, len(shape) + 1))))
    y = x.permute(*rng.sample(range(len(shape)), len(shape)))
    many = [
        y.sum(axis), y.max(axis), y.mean(axis), y.var(axis), y.prod(axis), y.std(axis),
        y.logsumexp(axis), (y - y.mean(axis, keepdim=True)).exp(), y.sum(axis).unsqueeze(0),
    ]  # fmt: skip
    Tensor.realize(*rng.sample(many, rng.randrange(1, 4)))


@family
def movement(rng: Random) -> None:
    a, b, c = (rng.choice((1, 2, 5, 16, 63, 128)) for _ in range(3))
    x = some(a, b, c)
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
    x, y = some(n, m), some(n, m)
    cut = rng.randrange(1, n)
    choice = rng.randrange(5)
    if choice == 0:
        x[:cut] = y[:cut] * 2
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
    x, at = some(n, m), indices(rng.choice((3, 100)))
    wide = indices(7, m)
    many = [
        lambda: x[at], lambda: x.gather(0, wide), lambda: x.scatter(0, wide, some(7, m)),
        lambda: x.scatter_reduce(0, wide, some(7, m), "sum"), lambda: x[:, at % m],
        lambda: x.one_hot(10) if False else at.one_hot(200).float() @ some(200, m),
        lambda: x.sort(0)[0] if n < 2000 else x, lambda: x.topk(3, 0)[1] if n < 2000 else x,
        lambda: x.cumsum(0), lambda: x.cumprod(0), lambda: x.cummax(0)[0],
    ]  # fmt: skip
    rng.choice(many)().realize()


@family
def random_numbers(rng: Random) -> None:
    n, k, m = rng.choice((1, 64, 200, 1000)), rng.choice((1, 3, 10, 64)), rng.choice((1, 3, 64))
    many: list[Callable[[], Tensor]] = [
        lambda: Tensor.randn(n, k) @ Tensor.randn(k, m),
        lambda: Tensor.rand(n, k).softmax(),
        lambda: (Tensor.randn(n, k) @ some(k, m)).relu().sum(0),
        lambda: Tensor.randint(n, k, high=10).float().mean(0),
        lambda: Tensor.kaiming_uniform(n, k) @ some(k, m),
        lambda: some(n, k).dropout(0.3),
        lambda: Tensor.randn(n, k).T @ Tensor.randn(n, m),
    ]
    rng.choice(many)().realize()


@family
def optimiser(rng: Random) -> None:
    params = [
        some(*[rng.choice((1, 3, 64, 768, 1000)) for _ in range(rng.randrange(1, 3))], learns=True)
        for _ in range(rng.randrange(1, 5))
    ]
    kind = rng.choice((SGD, Adam, AdamW, LAMB, RMSprop, Muon))
    if kind is Muon:
        params = [some(rng.choice((64, 256)), rng.choice((64, 128)), learns=True)]
    settings: dict[str, Any] = {"momentum": 0.9} if kind is SGD else {}
    made = kind(params, lr=0.01, **settings)
    made.zero_grad()
    loss = params[0].square().mean()
    for p in params[1:]:
        loss = loss + (p * 2).exp().mean()
    loss.backward()
    if rng.random() < 0.5:
        clip_grad_norm_(params, 1.0)
    made.step()


@family
def perceptron(rng: Random) -> None:
    """Networks that end in one number are where kernels have odd shapes."""
    sizes = [rng.choice((1, 3, 13, 64, 128, 784)) for _ in range(rng.randrange(2, 5))]
    x = some(rng.choice((1, 32, 64, 256, 1000)), sizes[0])
    layers: list[Any] = []
    for before, after in zip(sizes, sizes[1:], strict=False):
        layers += [nn.Linear(before, after), rng.choice((Tensor.relu, Tensor.tanh, Tensor.gelu))]
    loss = x.sequential(layers[:-1]).square().mean()
    loss.backward()
    made = AdamW(nn.state.get_parameters(layers), lr=0.01)
    made.step()
