"""Layers of `nn` whose weights are values of the program, and losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.ops.contraction import conv, conv_transpose, weight
from fuzz.ops.indexing import indices
from fuzz.ops.reductions import layernorm, log_softmax
from fuzz.ops.table import Choice, Op, twice
from fuzz.pool import NotApplicable, Pool, axes, full, wide_floats
from fuzz.programs import Array, Statement


class Layer(Op):
    """The text is a constructor and attributes, which are set to the last inputs."""

    def text_of(self, one: Statement) -> str:
        constructor, *attributes = self.text.format(**one.args).split("; ")
        weights = one.inputs[len(one.inputs) - len(attributes) :]
        lines = [f"layer = {constructor}"]
        lines += [f"layer.{a} = {w}" for a, w in zip(attributes, weights, strict=True)]
        passed = one.inputs[: len(one.inputs) - len(attributes)]
        call = passed[0] if len(passed) == 1 else f"{passed[0]}, ({', '.join(passed[1:])})"
        call = call.replace("(", "").replace(")", "") if len(passed) == 2 else call
        return "; ".join([*lines, f"{', '.join(one.outs)} = layer({call})"])


def _linear(pool: Pool) -> Choice:
    name = pool.pick(wide_floats, full, axes(1, 3))
    x = pool[name]
    n, m = x.shape[-1], max(1, pool.one_of((1, pool.size())))
    if not pool.fits((x.size, m)):
        raise NotApplicable
    return [name, weight(pool, (m, n), x.dtype), weight(pool, (m,), x.dtype)], {"n": n, "m": m}


def _layernorm(pool: Pool) -> Choice:
    name = pool.pick(wide_floats, full)
    n = pool[name].shape[-1]
    return [name, *(weight(pool, (n,), pool[name].dtype) for _ in "wb")], {"n": n}


def _rms(x: Array, w: Array, n: int) -> Array:
    return x / np.sqrt(np.square(x).mean(-1, keepdims=True) + 0.03125) * w


def _rmsnorm(pool: Pool) -> Choice:
    name = pool.pick(wide_floats, full)
    n = pool[name].shape[-1]
    return [name, weight(pool, (n,), pool[name].dtype)], {"n": n}


def _groupnorm(pool: Pool) -> Choice:
    name = pool.pick(wide_floats, full, axes(3, 4))
    channels = pool[name].shape[1]
    groups = pool.one_of([g for g in range(1, channels + 1) if channels % g == 0])
    weights = [weight(pool, (channels,), pool[name].dtype) for _ in "wb"]
    return [name, *weights], {"groups": groups, "channels": channels}


def _by_channel(x: Array, ndim: int) -> Array:
    return x.reshape(-1, *(1,) * (ndim - 2))


def _numpy_groupnorm(x: Array, w: Array, b: Array, groups: int, channels: int) -> Array:
    normal = layernorm(x.reshape(x.shape[0], groups, -1)).reshape(x.shape)
    return normal * _by_channel(w, x.ndim) + _by_channel(b, x.ndim)


def _batchnorm(x: Array, w: Array, b: Array, channels: int) -> Array:
    """In evaluation, with the statistics of a new layer: mean 0, variance 1."""
    return x / np.sqrt(1 + 0.03125) * _by_channel(w, x.ndim) + _by_channel(b, x.ndim)


def _channels(pool: Pool) -> Choice:
    """Of float32, like the statistics of the layer."""
    name = pool.pick(lambda one: one.dtype == "float32", full, axes(2, 4))
    channels = pool[name].shape[1]
    weights = [weight(pool, (channels,), pool[name].dtype) for _ in "wb"]
    return [name, *weights], {"channels": channels}


def _conv1d(pool: Pool) -> Choice:
    name = pool.pick(wide_floats, full, axes(3, 3))
    _, channels, length = pool[name].shape
    size, outputs = pool.rng.randint(1, min(3, length)), pool.one_of((1, 2, 5))
    names = [weight(pool, s, pool[name].dtype) for s in ((outputs, channels, size), (outputs,))]
    return [name, *names], {
        "n": channels, "m": outputs, "size": size, "stride": pool.one_of((1, 2)),
    }  # fmt: skip


def _numpy_conv1d(x: Array, w: Array, b: Array, n: int, m: int, size: int, stride: int) -> Array:
    patches = np.lib.stride_tricks.sliding_window_view(x, size, -1)[:, :, ::stride]
    return np.einsum("nctk,ock->not", patches, w) + b[:, None]


def _conv2d(pool: Pool) -> Choice:
    name = pool.pick(wide_floats, full, axes(4, 4))
    channels = pool[name].shape[1]
    outputs = pool.one_of((1, 2, 3))
    shapes = ((outputs, channels, 3, 3), (outputs,))
    names = [weight(pool, s, pool[name].dtype) for s in shapes]
    if not pool.fits((pool[name].size, outputs)):
        raise NotApplicable
    return [name, *names], {"n": channels, "m": outputs}


def _upsample(pool: Pool) -> Choice:
    """A transposed convolution that doubles the size."""
    names, args = _conv2d(pool)
    n, m = args["n"], args["m"]
    if not pool.fits((pool[names[0]].size, 4, m)):
        raise NotApplicable
    return [names[0], weight(pool, (n, m, 4, 4), pool[names[0]].dtype), names[2]], args


def _numpy_conv2d(x: Array, w: Array, b: Array, n: int, m: int) -> Array:
    return conv(x, w, 1, 1, 1, 1) + b[:, None, None]


def _numpy_upsample(x: Array, w: Array, b: Array, n: int, m: int) -> Array:
    return conv_transpose(x, w, 1, 2, 1, 1) + b[:, None, None]


def _embedding(pool: Pool) -> Choice:
    n, m = max(1, pool.size()), max(1, pool.size())
    where = (pool.size(),) if pool.chance(0.6) else (2, pool.size())
    if not pool.fits((*where, m)) or not pool.fits((n, m)):
        raise NotApplicable
    return [indices(pool, where, n), weight(pool, (n, m), "float32")], {"n": n, "m": m}


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _cell(gates: int, states: int) -> Any:
    def choose(pool: Pool) -> Choice:
        name = pool.pick(wide_floats, full, axes(2, 2), lambda one: one.size < 200)
        batch, n = pool[name].shape
        m, dtype = pool.one_of((1, 2, 3, 5)), pool[name].dtype
        before = [weight(pool, (batch, m), dtype) for _ in range(states)]
        shapes = ((gates * m, n), (gates * m, m), (gates * m,), (gates * m,))
        return [name, *before, *(weight(pool, s, dtype) for s in shapes)], {"n": n, "m": m}

    return choose


def _lstm(
    x: Array, hidden: Array, cell: Array, wi: Array, wh: Array, bi: Array, bh: Array, n: int, m: int
) -> tuple[Array, Array]:
    update, forget, new, out = np.split(x @ wi.T + bi + hidden @ wh.T + bh, 4, -1)
    cell = _sigmoid(forget) * cell + _sigmoid(update) * np.tanh(new)
    return _sigmoid(out) * np.tanh(cell), cell


def _gru(
    x: Array, hidden: Array, wi: Array, wh: Array, bi: Array, bh: Array, n: int, m: int
) -> Array:
    reset, keep, new = np.split(x @ wi.T + bi, 3, -1)
    old_reset, old_keep, old_new = np.split(hidden @ wh.T + bh, 3, -1)
    keep = _sigmoid(keep + old_keep)
    new = np.tanh(new + _sigmoid(reset + old_reset) * old_new)
    return new * (1 - keep) + hidden * keep


EPS = "eps=0.03125"
CELL = "weight_ih; weight_hh; bias_ih; bias_hh"
LAYERS = [
    Layer("nn.Linear", "nn.Linear({n}, {m}); weight; bias", lambda x, w, b, n, m: x @ w.T + b,
          _linear, "exact", weight=3),
    Layer("nn.LayerNorm", "nn.LayerNorm({n}, " + EPS + "); weight; bias",
          lambda x, w, b, n: layernorm(x) * w + b, _layernorm),
    Layer("nn.RMSNorm", "nn.RMSNorm({n}, " + EPS + "); weight", _rms, _rmsnorm, weight=0.5),
    Layer("nn.GroupNorm", "nn.GroupNorm({groups}, {channels}, " + EPS + "); weight; bias",
          _numpy_groupnorm, _groupnorm, weight=0.5),
    Layer("nn.BatchNorm", "nn.BatchNorm({channels}, " + EPS + "); weight; bias", _batchnorm,
          _channels, weight=0.5),
    Layer("nn.Conv1d", "nn.Conv1d({n}, {m}, {size}, {stride}); weight; bias", _numpy_conv1d,
          _conv1d, "exact"),
    Layer("nn.Conv2d", "nn.Conv2d({n}, {m}, 3, padding=1); weight; bias", _numpy_conv2d, _conv2d,
          "exact"),
    Layer("nn.ConvTranspose2d", "nn.ConvTranspose2d({n}, {m}, 4, 2, 1); weight; bias",
          _numpy_upsample, _upsample, "exact"),
    Layer("nn.Embedding", "nn.Embedding({n}, {m}); weight", lambda i, w, n, m: w[i], _embedding,
          "move", lambda names, args: names[1]),
    Layer("nn.LSTMCell", "nn.LSTMCell({n}, {m}); " + CELL, _lstm, _cell(4, 2), result=twice,
          weight=0.3),
    Layer("nn.GRUCell", "nn.GRUCell({n}, {m}); " + CELL, _gru, _cell(3, 1), weight=0.3),
]  # fmt: skip

# ---------------------------------------------------------------------- losses


def _logits(pool: Pool) -> Choice:
    name = pool.pick(wide_floats, full, axes(2, 2))
    batch, classes = pool[name].shape
    return [name, indices(pool, (batch,), classes)], {}


def _log_p(x: Array, i: Array) -> Array:
    """The log-probability of class i in each row of logits."""
    return np.take_along_axis(log_softmax(x), i[:, None].astype(np.int64), 1)[:, 0]


def _probabilities(pool: Pool) -> Choice:
    name = pool.pick(wide_floats, full)
    return [name, pool.leaf(pool[name].shape, pool[name].dtype, 0, 2)], {}


def _binary(x: Array, y: Array) -> Array:
    return (np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x)))).mean()


LOSSES = [
    Op("cross_entropy", "{0}.cross_entropy({1})", lambda x, i: -_log_p(x, i).mean(), _logits,
       floor=1.0),
    Op("sparse cross-entropy", "{0}.sparse_categorical_crossentropy({1})",
       lambda x, i: -_log_p(x, i).mean(), _logits, weight=0.5, floor=1.0),
    Op("no reduction", '{0}.cross_entropy({1}, reduction="none")', lambda x, i: -_log_p(x, i),
       _logits, weight=0.5, floor=1.0),
    Op("nll_loss", "{0}.log_softmax().nll_loss({1})", lambda x, i: -_log_p(x, i).mean(), _logits,
       weight=0.5, floor=1.0),
    Op("binary_crossentropy_logits", "{0}.binary_crossentropy_logits({1})", _binary,
       _probabilities, weight=0.5, floor=1.0),
]  # fmt: skip
NETWORKS = [*LAYERS, *LOSSES]
