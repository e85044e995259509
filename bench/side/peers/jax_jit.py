"""JAX on CPU, every step jitted; training steps donate their state."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from workloads import gpt_shapes, init, mlp_shapes, mnist_shapes, resnet18_layers, resnet18_shapes


def to_numpy(x):
    return np.asarray(x)


def op(fn, *args):
    fn, args = jax.jit(fn), [jnp.asarray(a) for a in args]
    return lambda: jax.block_until_ready(fn(*args))


def _norm(x, w, b):
    c = x - x.mean(-1, keepdims=True)
    return c * lax.rsqrt((c * c).mean(-1, keepdims=True) + 1e-5) * w + b


def _ce(logits, y):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1).mean()


def _conv(x, w, stride=1, padding=0, groups=1):
    return lax.conv_general_dilated(
        x, w, (stride, stride), [(padding, padding)] * 2, feature_group_count=groups
    )


def _pool(x, k, s, p=0):
    return lax.reduce_window(
        x, -jnp.inf, lax.max, (1, 1, k, k), (1, 1, s, s), [(0, 0), (0, 0), (p, p), (p, p)]
    )


def _attend(q, k, v, mask):
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(jnp.where(mask, s, -jnp.inf)), v)


def _causal(q, k, v):
    return _attend(q, k, v, jnp.tril(jnp.ones((q.shape[2],) * 2, bool)))


def gemm(a, b):
    return op(lambda a, b: a @ b, a, b)


def linear(x, w):
    return op(lambda x, w: x @ w.T, x, w)


def chain(x):
    return op(
        lambda x: (
            jnp.maximum(jnp.sqrt(jnp.abs(jnp.maximum(x * 1.5 + 0.5, 0) * x - 0.25)) * 0.5 + x, -0.5)
            * 2
        ),
        x,
    )


def gelu(x):
    return op(lambda x: jax.nn.gelu(x, approximate=True), x)


def exp(x):
    return op(jnp.exp, x)


def sum_all(x):
    return op(jnp.sum, x)


def sum_axis(x, axis):
    return op(lambda x: x.sum(axis), x)


def softmax(x):
    return op(lambda x: jax.nn.softmax(x, 1), x)


def layernorm(x, w, b):
    return op(_norm, x, w, b)


def cross_entropy(x, y):
    return op(_ce, x, y)


def transpose(x):
    return op(lambda x: x.T + 0, x)


def cumsum(x):
    return op(lambda x: jnp.cumsum(x, 1), x)


def embedding(w, idx):
    return op(lambda w, i: w[i], w, idx)


def argmax(x):
    return op(lambda x: x.argmax(1), x)


def sort(x):
    return op(lambda x: jnp.sort(x, 1), x)


def conv2d(x, w, groups, padding):
    return op(lambda x, w: _conv(x, w, 1, padding, groups), x, w)


def maxpool(x):
    return op(lambda x: _pool(x, 3, 2, 1), x)


def attention(q, k, v):
    return op(_causal, q, k, v)


def attention_backward(q, k, v, g):
    return op(lambda q, k, v, g: jax.vjp(_causal, q, k, v)[1](g), q, k, v, g)


def add_jit(a, b):
    return op(lambda a, b: a + b, a, b)


def add_nojit(a, b):
    a, b = jnp.asarray(a), jnp.asarray(b)
    return lambda: jax.block_until_ready(a + b)


def add_tolist(a, b):
    a, b = jnp.asarray(a), jnp.asarray(b)
    return (a + b).tolist


def params(shapes):
    """Weights of linear layers are stored (in, out), as JAX libraries do: XLA's product with a transposed matrix is slow."""

    def linear(k, s):
        return len(s) == 2 and not k.startswith(("wte", "wpe"))

    return {
        k: jnp.asarray(init(k, s).T.copy() if linear(k, s) else init(k, s))
        for k, s in shapes.items()
    }


def train(loss_fn, p, decay, *batch):
    lr, b1, b2, eps = 1e-3, 0.9, 0.999, 1e-8

    @functools.partial(jax.jit, donate_argnums=(0, 1, 2))
    def update(p, m, v, t, *batch):
        loss, g = jax.value_and_grad(loss_fn)(p, *batch)
        m = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, m, g)
        v = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, v, g)

        def new(p, m, v):
            return p - lr * (m / (1 - b1**t) / (jnp.sqrt(v / (1 - b2**t)) + eps) + decay * p)

        return jax.tree.map(new, p, m, v), m, v, loss

    state = [p, jax.tree.map(jnp.zeros_like, p), jax.tree.map(jnp.zeros_like, p)]
    batch, t = [jnp.asarray(b) for b in batch], 0

    def step():
        nonlocal t
        t += 1
        *state[:], loss = update(*state, np.float32(t), *batch)
        return loss.item()

    return step


def train_mlp(x, y):
    def loss(p, x, y):
        return _ce(
            jax.nn.relu(x @ p["l1.weight"] + p["l1.bias"]) @ p["l2.weight"] + p["l2.bias"], y
        )

    return train(loss, params(mlp_shapes()), 0.0, x, y)


train_mlp_not_captured = train_mlp


def train_mnist(x, y):
    def conv(p, n, x):
        return jax.nn.relu(_conv(x, p[f"{n}.weight"]) + p[f"{n}.bias"][:, None, None])

    def norm_pool(p, n, x):
        c = x - x.mean((0, 2, 3), keepdims=True)
        x = c * lax.rsqrt((c * c).mean((0, 2, 3), keepdims=True) + 1e-5)
        return _pool(x * p[f"{n}.weight"][:, None, None] + p[f"{n}.bias"][:, None, None], 2, 2)

    def loss(p, x, y):
        x = norm_pool(p, "bn1", conv(p, "c2", conv(p, "c1", x)))
        x = norm_pool(p, "bn2", conv(p, "c4", conv(p, "c3", x)))
        return _ce(x.reshape(x.shape[0], -1) @ p["fc.weight"] + p["fc.bias"], y)

    return train(loss, params(mnist_shapes()), 0.0, x, y)


def gpt_block(p, h, x, heads, attend):
    b, t, c = x.shape

    def lin(n, x):
        return x @ p[f"{h}.{n}.weight"] + p[f"{h}.{n}.bias"]

    def ln(n, x):
        return _norm(x, p[f"{h}.{n}.weight"], p[f"{h}.{n}.bias"])

    q, k, v = (
        lin("c_attn", ln("ln_1", x)).reshape(b, t, 3, heads, c // heads).transpose(2, 0, 3, 1, 4)
    )
    x = x + lin("c_proj", attend(q, k, v).transpose(0, 2, 1, 3).reshape(b, t, c))
    return x + lin("proj", jax.nn.gelu(lin("fc", ln("ln_2", x)), approximate=True))


def gpt_logits(p, x, cfg):
    x = p["wte.weight"][x] + p["wpe.weight"][: x.shape[1]]
    for i in range(cfg["layers"]):
        x = gpt_block(p, f"h.{i}", x, cfg["heads"], _causal)
    return _norm(x, p["ln_f.weight"], p["ln_f.bias"]) @ p["wte.weight"].T


def train_gpt(cfg, x, y):
    def loss(p, x, y):
        return _ce(gpt_logits(p, x, cfg).reshape(-1, cfg["vocab"]), y.reshape(-1))

    return train(loss, params(gpt_shapes(cfg)), 0.01, x, y)


def gpt_forward(cfg, x):
    p, x, fn = params(gpt_shapes(cfg)), jnp.asarray(x), jax.jit(lambda p, x: gpt_logits(p, x, cfg))
    return lambda: jax.block_until_ready(fn(p, x))


def gpt_decode(cfg, tokens):
    p, heads, ctx = params(gpt_shapes(cfg)), cfg["heads"], 64

    @functools.partial(jax.jit, donate_argnums=(1,))
    def token(p, cache, tok, pos):
        new = []

        def attend(q, k, v):
            kv = lax.dynamic_update_slice_in_dim(cache[len(new)], jnp.stack([k, v]), pos, 3)
            new.append(kv)
            return _attend(q, kv[0], kv[1], (jnp.arange(ctx) <= pos)[None, None, None])

        x = (p["wte.weight"][tok] + p["wpe.weight"][pos])[None, None]
        for i in range(cfg["layers"]):
            x = gpt_block(p, f"h.{i}", x, heads, attend)
        logits = (_norm(x, p["ln_f.weight"], p["ln_f.bias"]) @ p["wte.weight"].T)[0, 0]
        return new, logits, logits.argmax()

    cache = [jnp.zeros((2, 1, heads, ctx, cfg["dim"] // heads)) for _ in range(cfg["layers"])]

    def step():
        nonlocal cache
        for i, t in enumerate(tokens):
            cache, logits, best = token(p, cache, np.int32(t), np.int32(i))
            best.item()
        return logits

    return step


def resnet18(x):
    strides = {n: (k, s) for n, _, _, k, s in resnet18_layers()}

    def conv(p, n, x):
        k, s = strides[n]
        scale = p[f"{n}.gamma"] * lax.rsqrt(p[f"{n}.running_var"] + 1e-5)
        return (_conv(x, p[f"{n}.weight"], s, k // 2) - p[f"{n}.mean"][:, None, None]) * scale[
            :, None, None
        ] + p[f"{n}.beta"][:, None, None]

    @jax.jit
    def net(p, x):
        x = _pool(jax.nn.relu(conv(p, "stem", x)), 3, 2, 1)
        for b in (f"s{s}b{b}" for s in range(4) for b in range(2)):
            skip = conv(p, f"{b}.down", x) if f"{b}.down" in strides else x
            x = jax.nn.relu(conv(p, f"{b}.2", jax.nn.relu(conv(p, f"{b}.1", x))) + skip)
        return x.mean((2, 3)) @ p["fc.weight"] + p["fc.bias"]

    p, x = params(resnet18_shapes()), jnp.asarray(x)
    return lambda: jax.block_until_ready(net(p, x))
