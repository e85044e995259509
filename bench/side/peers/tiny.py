"""tinygrad, and any library with the same API: the module's name comes from BENCH_MODULE."""

import importlib
import os

import numpy as np
from workloads import gpt_shapes, init, mlp_shapes, mnist_shapes, resnet18_layers, resnet18_shapes

lib = importlib.import_module(os.environ.get("BENCH_MODULE", "tinygrad"))
Tensor, Device, Context, Variable = lib.Tensor, lib.Device, lib.Context, lib.Variable


def part(name):
    """A module of the library; a first sum does not need layers and optimisers."""
    return importlib.import_module(f"{lib.__name__}.{name}")


def to_numpy(x):
    return x.numpy() if isinstance(x, Tensor) else x


def T(a):
    return Tensor(a).realize()


def sync():
    Device[Device.DEFAULT].synchronize()


def counters():
    """Kernels, arithmetic operations and bytes since the last call."""
    g = lib.GlobalCounters
    out = {"kernels": g.kernel_count, "ops": g.global_ops, "moved": g.global_mem}
    g.reset()
    return out


def op(fn, *args):
    args = [T(a) for a in args]

    @lib.TinyJit
    def jitted(*args):
        out = fn(*args)
        if isinstance(out, Tensor):
            return out.contiguous().realize()
        Tensor.realize(*out)
        return out

    def step():
        out = jitted(*args)
        sync()
        return out

    return step


def gemm(a, b):
    return op(lambda a, b: a @ b, a, b)


def linear(x, w):
    return op(lambda x, w: x @ w.T, x, w)


def chain(x):
    return op(
        lambda x: ((((x * 1.5 + 0.5).relu() * x - 0.25).abs().sqrt() * 0.5 + x).maximum(-0.5)) * 2,
        x,
    )


def gelu(x):
    return op(lambda x: x.gelu(), x)


def exp(x):
    return op(lambda x: x.exp(), x)


def sum_all(x):
    return op(lambda x: x.sum(), x)


def sum_axis(x, axis):
    return op(lambda x: x.sum(axis), x)


def softmax(x):
    return op(lambda x: x.softmax(1), x)


def layernorm(x, w, b):
    return op(lambda x, w, b: x.layernorm() * w + b, x, w, b)


def cross_entropy(x, y):
    return op(lambda x, y: x.sparse_categorical_crossentropy(y), x, y)


def transpose(x):
    return op(lambda x: x.T, x)


def cumsum(x):
    return op(lambda x: x.cumsum(1), x)


def embedding(w, idx):
    return op(lambda w, i: w[i], w, idx)


def argmax(x):
    return op(lambda x: x.argmax(1), x)


def sort(x):
    return op(lambda x: x.sort(1)[0], x)


def conv2d(x, w, groups, padding):
    return op(lambda x, w: x.conv2d(w, padding=padding, groups=groups), x, w)


def maxpool(x):
    return op(lambda x: x.max_pool2d((3, 3), 2, padding=1), x)


def attention(q, k, v):
    return op(lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True), q, k, v)


def attention_backward(q, k, v, g):
    return op(
        lambda q, k, v, g: q.scaled_dot_product_attention(k, v, is_causal=True).gradient(
            q, k, v, gradient=g
        ),
        q,
        k,
        v,
        g,
    )


def add_jit(a, b):
    return op(lambda a, b: a + b, a, b)


def add_nojit(a, b):
    a, b = T(a), T(b)

    def step():
        out = (a + b).realize()
        sync()
        return out

    return step


def add_tolist(a, b):
    a, b = Tensor(a), Tensor(b)
    return (a + b).tolist


def params(shapes):
    return {k: T(init(k, s)) for k, s in shapes.items()}


def train(loss_fn, p, make_opt, *batch, capture=None):
    opt, batch = make_opt(list(p.values()), lr=1e-3), [T(b) for b in batch]

    @(capture or lib.TinyJit)
    @Context(TRAINING=1)
    def update(*batch):
        opt.zero_grad()
        return loss_fn(p, *batch).backward().realize(*opt.schedule_step())

    return lambda: update(*batch).item()


def train_mlp(x, y, capture=None):
    def loss(p, x, y):
        return (
            x.linear(p["l1.weight"].T, p["l1.bias"])
            .relu()
            .linear(p["l2.weight"].T, p["l2.bias"])
            .sparse_categorical_crossentropy(y)
        )

    return train(loss, params(mlp_shapes()), part("nn.optim").Adam, x, y, capture=capture)


def train_mlp_not_captured(x, y):
    return train_mlp(x, y, capture=lambda step: step)


def train_mnist(x, y):
    def conv(p, n, x):
        return x.conv2d(p[f"{n}.weight"], p[f"{n}.bias"]).relu()

    norms = {
        "bn1": part("nn").BatchNorm(32, affine=False, track_running_stats=False),
        "bn2": part("nn").BatchNorm(64, affine=False, track_running_stats=False),
    }

    def norm_pool(p, n, x):
        return (
            norms[n](x) * p[f"{n}.weight"].reshape(1, -1, 1, 1)
            + p[f"{n}.bias"].reshape(1, -1, 1, 1)
        ).max_pool2d()

    def loss(p, x, y):
        x = norm_pool(p, "bn1", conv(p, "c2", conv(p, "c1", x)))
        x = norm_pool(p, "bn2", conv(p, "c4", conv(p, "c3", x)))
        return (
            x.flatten(1).linear(p["fc.weight"].T, p["fc.bias"]).sparse_categorical_crossentropy(y)
        )

    return train(loss, params(mnist_shapes()), part("nn.optim").Adam, x, y)


def gpt_block(p, h, x, heads, attend):
    b, t, c = x.shape

    def lin(n, x):
        return x.linear(p[f"{h}.{n}.weight"].T, p[f"{h}.{n}.bias"])

    def ln(n, x):
        return x.layernorm() * p[f"{h}.{n}.weight"] + p[f"{h}.{n}.bias"]

    q, k, v = (
        lin("c_attn", ln("ln_1", x)).reshape(b, t, 3, heads, c // heads).permute(2, 0, 3, 1, 4)
    )
    x = x + lin("c_proj", attend(q, k, v).transpose(1, 2).reshape(b, t, c))
    return (x + lin("proj", lin("fc", ln("ln_2", x)).gelu())).contiguous()


def gpt_logits(p, x, cfg):
    def causal(q, k, v):
        return q.scaled_dot_product_attention(k, v, is_causal=True)

    x = p["wte.weight"][x] + p["wpe.weight"][: x.shape[1]]
    for i in range(cfg["layers"]):
        x = gpt_block(p, f"h.{i}", x, cfg["heads"], causal)
    return (x.layernorm() * p["ln_f.weight"] + p["ln_f.bias"]) @ p["wte.weight"].T


def train_gpt(cfg, x, y):
    def loss(p, x, y):
        return (
            gpt_logits(p, x, cfg)
            .reshape(-1, cfg["vocab"])
            .sparse_categorical_crossentropy(y.flatten())
        )

    return train(loss, params(gpt_shapes(cfg)), part("nn.optim").AdamW, x, y)


def gpt_forward(cfg, x):
    p = params(gpt_shapes(cfg))
    return op(lambda x: gpt_logits(p, x, cfg), x)


def gpt_decode(cfg, tokens):
    p, heads, ctx, c = params(gpt_shapes(cfg)), cfg["heads"], 64, cfg["dim"]
    cache = [
        Tensor.zeros(2, 1, heads, ctx, c // heads).contiguous().realize()
        for _ in range(cfg["layers"])
    ]

    @lib.TinyJit
    def token(tok, pos):
        x = p["wte.weight"][tok].reshape(1, 1, c) + p["wpe.weight"].shrink(
            ((pos, pos + 1), None)
        ).reshape(1, 1, c)
        for i in range(cfg["layers"]):

            def attend(q, k, v):
                cache[i][:, :, :, pos : pos + 1, :].assign(Tensor.stack(k, v)).realize()
                return q.scaled_dot_product_attention(
                    cache[i][0][:, :, : pos + 1], cache[i][1][:, :, : pos + 1]
                )

            x = gpt_block(p, f"h.{i}", x, heads, attend)
        logits = ((x.layernorm() * p["ln_f.weight"] + p["ln_f.bias"]) @ p["wte.weight"].T).reshape(
            -1
        )
        return logits.realize(best := logits.argmax()), best

    toks, pos = [T(np.array([t], np.int32)) for t in tokens], Variable("pos", 0, ctx - 1)

    def step():
        for i, t in enumerate(toks):
            logits, best = token(t, pos.bind(i))
            best.item()
        return logits

    return step


def resnet18(x):
    p, strides = params(resnet18_shapes()), {n: (k, s) for n, _, _, k, s in resnet18_layers()}

    def conv(n, x):
        k, s = strides[n]
        x = x.conv2d(p[f"{n}.weight"], stride=s, padding=k // 2)
        return x.batchnorm(
            p[f"{n}.gamma"], p[f"{n}.beta"], p[f"{n}.mean"], (p[f"{n}.running_var"] + 1e-5).rsqrt()
        )

    def net(x):
        x = conv("stem", x).relu().max_pool2d((3, 3), 2, padding=1)
        for b in (f"s{s}b{b}" for s in range(4) for b in range(2)):
            skip = conv(f"{b}.down", x) if f"{b}.down" in strides else x
            x = (conv(f"{b}.2", conv(f"{b}.1", x).relu()) + skip).relu()
        return x.mean((2, 3)).linear(p["fc.weight"].T, p["fc.bias"])

    return op(net, x)
