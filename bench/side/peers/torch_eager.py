"""PyTorch, eager. The same code, passed through `jit`, is the torch.compile contender."""

import os

import torch
import torch.nn.functional as F
from workloads import gpt_shapes, init, mlp_shapes, mnist_shapes, resnet18_layers, resnet18_shapes

torch.set_num_threads(int(os.environ.get("BENCH_THREADS", "2")))


def jit(fn):
    return fn  # torch_compiled replaces this


T = torch.from_numpy


def to_numpy(x):
    return x.detach().numpy() if isinstance(x, torch.Tensor) else x


def op(fn, *args, **kw):
    """The step of a workload without gradients."""
    fn, args = jit(fn), [T(a) for a in args]

    def step():
        with torch.no_grad():
            return fn(*args, **kw)

    return step


def gemm(a, b):
    return op(lambda a, b: a @ b, a, b)


def linear(x, w):
    return op(F.linear, x, w)


def chain(x):
    return op(
        lambda x: (
            ((((x * 1.5 + 0.5).relu() * x - 0.25).abs().sqrt() * 0.5 + x).clamp(min=-0.5)) * 2
        ),
        x,
    )


def gelu(x):
    return op(lambda x: F.gelu(x, approximate="tanh"), x)


def exp(x):
    return op(lambda x: x.exp(), x)


def sum_all(x):
    return op(lambda x: x.sum(), x)


def sum_axis(x, axis):
    return op(lambda x: x.sum(axis), x)


def softmax(x):
    return op(lambda x: x.softmax(1), x)


def layernorm(x, w, b):
    return op(lambda x, w, b: F.layer_norm(x, (x.shape[1],), w, b), x, w, b)


def cross_entropy(x, y):
    return op(F.cross_entropy, x, y.astype("int64"))


def transpose(x):
    return op(lambda x: x.T.contiguous(), x)


def cumsum(x):
    return op(lambda x: x.cumsum(1), x)


def embedding(w, idx):
    return op(lambda w, i: F.embedding(i, w), w, idx)


def argmax(x):
    return op(lambda x: x.argmax(1), x)


def sort(x):
    return op(lambda x: x.sort(1)[0], x)


def conv2d(x, w, groups, padding):
    return op(lambda x, w: F.conv2d(x, w, padding=padding, groups=groups), x, w)


def maxpool(x):
    return op(lambda x: F.max_pool2d(x, 3, 2, 1), x)


def attention(q, k, v):
    return op(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v)


def add_jit(a, b):
    return op(lambda a, b: a + b, a, b)


def add_nojit(a, b):
    a, b = T(a), T(b)
    return lambda: a + b


def add_tolist(a, b):
    a, b, fn = T(a), T(b), jit(lambda a, b: a + b)
    return lambda: fn(a, b).tolist()


def attention_backward(q, k, v, g):
    q, k, v, g = T(q).requires_grad_(), T(k).requires_grad_(), T(v).requires_grad_(), T(g)
    fn = jit(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True))
    return lambda: torch.autograd.grad(fn(q, k, v), (q, k, v), g)


# ---- models: a dictionary of parameters and a function ----


def params(shapes, grad=True):
    return {k: T(init(k, s)).requires_grad_(grad) for k, s in shapes.items()}


def train(loss_fn, p, opt, *batch):
    loss_fn, batch = (
        jit(loss_fn),
        [T(b.astype("int64") if b.dtype.kind == "i" else b) for b in batch],
    )
    opt = opt(list(p.values()), lr=1e-3, fused=True)

    def step():
        opt.zero_grad()
        loss = loss_fn(p, *batch)
        loss.backward()
        opt.step()
        return loss.item()

    return step


def train_mlp(x, y):
    def loss(p, x, y):
        return F.cross_entropy(
            F.linear(
                F.linear(x, p["l1.weight"], p["l1.bias"]).relu(), p["l2.weight"], p["l2.bias"]
            ),
            y,
        )

    return train(loss, params(mlp_shapes()), torch.optim.Adam, x, y)


train_mlp_not_captured = train_mlp


def train_mnist(x, y):
    def conv(p, n, x):
        return F.conv2d(x, p[f"{n}.weight"], p[f"{n}.bias"]).relu()

    def norm_pool(p, n, x):
        return F.max_pool2d(
            F.batch_norm(x, None, None, p[f"{n}.weight"], p[f"{n}.bias"], training=True), 2
        )

    def loss(p, x, y):
        x = norm_pool(p, "bn1", conv(p, "c2", conv(p, "c1", x)))
        x = norm_pool(p, "bn2", conv(p, "c4", conv(p, "c3", x)))
        return F.cross_entropy(F.linear(x.flatten(1), p["fc.weight"], p["fc.bias"]), y)

    return train(loss, params(mnist_shapes()), torch.optim.Adam, x, y)


def gpt_block(p, h, x, heads, attend):
    b, t, c = x.shape

    def lin(n, x):
        return F.linear(x, p[f"{h}.{n}.weight"], p[f"{h}.{n}.bias"])

    def ln(n, x):
        return F.layer_norm(x, (c,), p[f"{h}.{n}.weight"], p[f"{h}.{n}.bias"])

    q, k, v = lin("c_attn", ln("ln_1", x)).view(b, t, 3, heads, c // heads).permute(2, 0, 3, 1, 4)
    x = x + lin("c_proj", attend(q, k, v).transpose(1, 2).reshape(b, t, c))
    return x + lin("proj", F.gelu(lin("fc", ln("ln_2", x)), approximate="tanh"))


def gpt_logits(p, x, cfg):
    def causal(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    x = F.embedding(x, p["wte.weight"]) + p["wpe.weight"][: x.shape[1]]
    for i in range(cfg["layers"]):
        x = gpt_block(p, f"h.{i}", x, cfg["heads"], causal)
    return F.linear(
        F.layer_norm(x, (x.shape[-1],), p["ln_f.weight"], p["ln_f.bias"]), p["wte.weight"]
    )


def train_gpt(cfg, x, y):
    def loss(p, x, y):
        return F.cross_entropy(gpt_logits(p, x, cfg).flatten(0, 1), y.flatten())

    return train(loss, params(gpt_shapes(cfg)), torch.optim.AdamW, x, y)


def gpt_forward(cfg, x):
    p, x, fn = (
        params(gpt_shapes(cfg), False),
        T(x.astype("int64")),
        jit(lambda p, x: gpt_logits(p, x, cfg)),
    )

    def step():
        with torch.no_grad():
            return fn(p, x)

    return step


STATIC_CACHE = False  # torch_compiled: fixed shapes and a mask instead of slices


def gpt_decode(cfg, tokens):
    p, c, heads, ctx = params(gpt_shapes(cfg), False), cfg["dim"], cfg["heads"], 64
    ks, vs = (
        [torch.zeros(1, heads, ctx, c // heads) for _ in range(cfg["layers"])] for _ in range(2)
    )

    def token(p, ks, vs, tok, pos):
        def attend(q, k, v):
            if STATIC_CACHE:
                K.index_copy_(2, pos, k)
                V.index_copy_(2, pos, v)
                return F.scaled_dot_product_attention(
                    q, K, V, attn_mask=(torch.arange(ctx) <= pos)[None, None, None]
                )
            K[:, :, pos : pos + 1], V[:, :, pos : pos + 1] = k, v
            return F.scaled_dot_product_attention(q, K[:, :, : pos + 1], V[:, :, : pos + 1])

        x = (
            F.embedding(tok, p["wte.weight"])
            + (p["wpe.weight"][pos] if STATIC_CACHE else p["wpe.weight"][pos : pos + 1])
        )[None]
        for i in range(cfg["layers"]):
            K, V = ks[i], vs[i]
            x = gpt_block(p, f"h.{i}", x, heads, attend)
        return F.linear(F.layer_norm(x, (c,), p["ln_f.weight"], p["ln_f.bias"]), p["wte.weight"])[
            0, 0
        ]

    token, toks = jit(token), [torch.tensor([int(t)]) for t in tokens]
    pos = [torch.tensor([i]) if STATIC_CACHE else i for i in range(len(toks))]

    def step():
        with torch.no_grad():
            for t, i in zip(toks, pos):
                logits = token(p, ks, vs, t, i)
                logits.argmax().item()
        return logits

    return step


def resnet18(x):
    p, strides = (
        params(resnet18_shapes(), False),
        {n: (k, s) for n, _, _, k, s in resnet18_layers()},
    )

    def conv(p, n, x):
        k, s = strides[n]
        return F.batch_norm(
            F.conv2d(x, p[f"{n}.weight"], stride=s, padding=k // 2),
            p[f"{n}.mean"],
            p[f"{n}.running_var"],
            p[f"{n}.gamma"],
            p[f"{n}.beta"],
        )

    def net(p, x):
        x = F.max_pool2d(conv(p, "stem", x).relu(), 3, 2, 1)
        for b in (f"s{s}b{b}" for s in range(4) for b in range(2)):
            skip = conv(p, f"{b}.down", x) if f"{b}.down" in strides else x
            x = (conv(p, f"{b}.2", conv(p, f"{b}.1", x).relu()) + skip).relu()
        return F.linear(x.mean((2, 3)), p["fc.weight"], p["fc.bias"])

    x, net = T(x), jit(net)

    def step():
        with torch.no_grad():
            return net(p, x)

    return step
