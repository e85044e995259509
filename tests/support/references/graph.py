"""Graph -> NumPy array: an interpreter of the graph's grammar, one plain function per op."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import AxisError
from glassgrad.base.rounding import convert
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, toposort
from glassgrad.lower.math.sine import cosine_argument

Array = np.ndarray[Any, np.dtype[Any]]
Cache = dict[UOp, Array]


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """NumPy's dtype for ours; bfloat16 and the fp8s come from ml_dtypes."""
    if dtype.format is not None:
        return np.dtype(dtype.format)
    import ml_dtypes

    names = {"bfloat16": "bfloat16", "fp8e4m3": "float8_e4m3fn", "fp8e5m2": "float8_e5m2"}
    return np.dtype(getattr(ml_dtypes, names[dtype.name]))


def evaluate(root: UOp, cache: Cache | None = None) -> Array:
    """The value of one node. Pass a cache to share work between calls."""
    return evaluate_all((root,), cache)[0]


def evaluate_all(roots: Iterable[UOp], cache: Cache | None = None) -> list[Array]:
    """The values of several nodes. Buffers are read as they are now; nothing is written."""
    done: Cache = {} if cache is None else cache
    wanted = tuple(roots)
    with np.errstate(all="ignore"):
        for node in toposort(wanted, stop=done.__contains__):
            if node not in done and node.op is Ops.DEFERRED:
                (written,) = node.arg.function(*node.src)
                done[node] = evaluate(written, done)
            elif node not in done and node.op is Ops.REDUCE and node.arg[0] is Ops.ASSIGN:
                done[node] = _last(node, *[done[source] for source in node.src[0].src])
            elif node not in done and node.op is Ops.SIN and cosine_argument(node.src[0])[1]:
                done[node] = np.cos(done[node.src[0].src[0]])
            elif node not in done:
                done[node] = _evaluate(node, [done[source] for source in node.src])
    return [done[root] for root in wanted]


def _evaluate(node: UOp, values: list[Array]) -> Array:
    found = np.asarray(RULES[node.op](node, *values))
    assert found.shape == node.shape, (node.op, found.shape, node.shape)
    assert found.dtype == numpy_dtype(node.dtype), (node.op, found.dtype, node.dtype)
    return found


# ---------------------------------------------------------------------- leaves and elementwise


def _const(node: UOp) -> Array:
    # ml_dtypes rounds by way of float32, twice
    return np.array(convert(node.arg, node.dtype)).astype(numpy_dtype(node.dtype))


def _buffer(node: UOp) -> Array:
    return np.array(node.arg.numpy())


def _iota(node: UOp) -> Array:
    return np.arange(node.arg).astype(numpy_dtype(node.dtype))


def cast(x: Array, source: DType, target: DType) -> Array:
    """Floats become ints by truncation; nan is 0 and what does not fit is the nearest that does."""
    wanted = numpy_dtype(target)
    if source.kind != "float" or target.kind not in ("int", "uint"):
        return x.astype(bool) if target.kind == "bool" else x.astype(wanted)
    wide = np.trunc(x.astype(np.float64))
    low, high = dtypes.min(target), dtypes.max(target)
    inside = (wide >= low) & (wide < float(int(high) + 1))
    whole = np.where(inside, wide, 0.0).astype(wanted)
    edge = np.where(wide > 0, np.array(high, wanted), np.array(low, wanted))
    return np.where(inside | np.isnan(wide), whole, edge)


def _cast(node: UOp, x: Array) -> Array:
    return cast(x, node.src[0].dtype, node.dtype)


def _bitcast(node: UOp, x: Array) -> Array:
    return np.ascontiguousarray(x).view(numpy_dtype(node.dtype)).reshape(x.shape)


def _reciprocal(node: UOp, x: Array) -> Array:
    return np.divide(np.ones((), x.dtype), x)


def _check(node: UOp, x: Array) -> Array:
    size, axis = node.arg[:2]
    if ((x < 0) | (x >= size)).any():
        raise AxisError(f"an index is out of range for axis {axis} of size {size}")
    return x


def _where(node: UOp, x: Array, y: Array, z: Array) -> Array:
    return np.where(x, y, z)


def threefry(counter: Array, key: Array) -> Array:
    """Threefry-2x32 with 20 rounds; the low 32 bits of counter, key and result are word 0."""
    low, bits = np.uint64(0xFFFFFFFF), np.uint64(32)
    words = [counter & low, counter >> bits]
    keys = [key & low, key >> bits]
    keys.append(keys[0] ^ keys[1] ^ np.uint64(0x1BD11BDA))
    words = [(words[0] + keys[0]) & low, (words[1] + keys[1]) & low]
    rotations = ((13, 15, 26, 6), (17, 29, 16, 24))
    for group in range(5):
        for turn in rotations[group % 2]:
            words[0] = (words[0] + words[1]) & low
            turned = words[1] << np.uint64(turn) | words[1] >> np.uint64(32 - turn)
            words[1] = words[0] ^ (turned & low)
        words[0] = (words[0] + keys[(group + 1) % 3]) & low
        words[1] = (words[1] + keys[(group + 2) % 3] + np.uint64(group + 1)) & low
    return words[0] | words[1] << bits


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy function of the values alone, in their own dtype."""

    def rule(node: UOp, *values: Array) -> Any:
        return function(*values)

    return rule


# ---------------------------------------------------------------------- movement


def _pad(node: UOp, x: Array) -> Array:
    out = np.zeros(node.shape, x.dtype)
    pairs = zip(x.shape, node.arg, strict=True)
    out[tuple(slice(before, before + n) for n, (before, _) in pairs)] = x
    return out


def _shrink(node: UOp, x: Array) -> Array:
    return x[tuple(slice(start, stop) for start, stop in node.arg)]


def _flip(node: UOp, x: Array) -> Array:
    return np.flip(x, node.arg)


def _window(node: UOp, x: Array) -> Array:
    axis, size, stride, dilation = node.arg
    steps = node.shape[axis]
    columns = [
        np.take(x, [o * stride + k * dilation for o in range(steps)], axis) for k in range(size)
    ]
    return np.stack(columns, -1)


def _window_adjoint(node: UOp, x: Array) -> Array:
    axis, _, stride, dilation = node.arg
    out = np.zeros(node.shape, x.dtype)
    to, source = np.moveaxis(out, axis, 0), np.moveaxis(x, axis, 0)
    for i in range(to.shape[0]):
        for k in range(x.shape[-1]):
            o, rest = divmod(i - k * dilation, stride)
            if rest == 0 and 0 <= o < source.shape[0]:
                to[i, ..., k] = source[o, ..., k]
    return out


def _gather(node: UOp, x: Array, index: Array) -> Array:
    size = x.shape[node.arg]
    if size == 0:
        return np.zeros(index.shape, x.dtype)
    inside = (index >= 0) & (index < size)
    found = np.take_along_axis(x, np.where(inside, index, 0).astype(np.int64), node.arg)
    return np.where(inside, found, np.zeros((), x.dtype))


# ---------------------------------------------------------------------- reductions and indices


def _reduce(node: UOp, x: Array) -> Array:
    op, axes = node.arg
    if (
        op is Ops.ADD and node.dtype.kind == "float"
    ):  # one rounding: better than any order of adding
        return np.add.reduce(x.astype(np.float64), axis=axes).astype(x.dtype)
    if x.size == 0 and op in (Ops.MAX, Ops.MIN):
        start = (dtypes.min if op is Ops.MAX else dtypes.max)(node.dtype)
        return REDUCERS[op].reduce(x, axis=axes, initial=start).astype(x.dtype)
    return np.asarray(REDUCERS[op].reduce(x, axis=axes, dtype=x.dtype))


def _last(node: UOp, condition: Array, x: Array, y: Array) -> Array:
    """x at the last step where the condition holds, y where there is none."""
    (axis,) = node.arg[1]
    condition, x, y = np.broadcast_arrays(condition, x, y)
    steps = np.arange(condition.shape[axis]).reshape((-1,) + (1,) * (condition.ndim - 1 - axis))
    last = np.where(condition, steps, -1).max(axis=axis, keepdims=True)
    found = np.take_along_axis(x, np.maximum(last, 0), axis)
    return np.where(last < 0, y.take([0], axis), found).squeeze(axis)


REDUCERS: dict[Ops, np.ufunc] = {
    Ops.ADD: np.add, Ops.MUL: np.multiply, Ops.MAX: np.maximum, Ops.MIN: np.minimum,
}  # fmt: skip


def _scan(node: UOp, x: Array, factor: Array | None = None) -> Array:
    op, axis = node.arg
    if factor is None:
        return np.asarray(REDUCERS[op].accumulate(x, axis=axis, dtype=x.dtype))
    return recurrence(x, factor, axis)


def recurrence(x: Array, factor: Array, axis: int) -> Array:
    """y[i] = y[i-1] * factor[i] + x[i]"""
    out = np.moveaxis(np.array(x), axis, 0)
    along = np.moveaxis(factor, axis, 0)
    for i in range(1, len(out)):
        out[i] += out[i - 1] * along[i]
    return np.moveaxis(out, 0, axis)


def _assign(node: UOp, target: Array, value: Array) -> Array:
    positions = np.arange(target.size).reshape(target.shape)
    for op, arg in node.arg or ():
        below = UOp(Ops.EXPAND, dtypes.int64, (), positions.shape)  # the shape of the moved value
        positions = np.asarray(RULES[op](UOp(op, dtypes.int64, (below,), arg), positions))
    out = target.copy()
    out.reshape(-1)[positions] = value
    return out


def _same(node: UOp, x: Array) -> Array:
    return x


RULES: dict[Ops, Callable[..., Any]] = {
    Ops.CONST: _const,
    Ops.BUFFER: _buffer,
    Ops.IOTA: _iota,
    Ops.CAST: _cast,
    Ops.BITCAST: _bitcast,
    Ops.NEG: _plain(np.negative),
    Ops.RECIPROCAL: _reciprocal,
    Ops.SQRT: _plain(np.sqrt),
    Ops.EXP2: _plain(np.exp2),
    Ops.LOG2: _plain(np.log2),
    Ops.SIN: _plain(np.sin),
    Ops.TRUNC: _plain(np.trunc),
    Ops.ADD: _plain(np.add),
    Ops.SUB: _plain(np.subtract),
    Ops.MUL: _plain(np.multiply),
    Ops.FDIV: _plain(np.divide),
    Ops.FLOORDIV: _plain(np.floor_divide),
    Ops.FLOORMOD: _plain(np.mod),
    Ops.MAX: _plain(np.maximum),
    Ops.MIN: _plain(np.minimum),
    Ops.POW: _plain(np.power),
    Ops.SHL: _plain(np.left_shift),
    Ops.SHR: _plain(np.right_shift),
    Ops.AND: _plain(np.bitwise_and),
    Ops.OR: _plain(np.bitwise_or),
    Ops.XOR: _plain(np.bitwise_xor),
    Ops.CMPLT: _plain(np.less),
    Ops.CMPEQ: _plain(np.equal),
    Ops.CMPNE: _plain(np.not_equal),
    Ops.THREEFRY: _plain(threefry),
    Ops.WHERE: _where,
    Ops.CHECK: _check,
    Ops.CUSTOM: lambda node, x, *inputs: x,
    Ops.RESHAPE: lambda node, x: x.reshape(node.arg),
    Ops.PERMUTE: lambda node, x: x.transpose(node.arg),
    Ops.EXPAND: lambda node, x: np.broadcast_to(x, node.arg),
    Ops.PAD: _pad,
    Ops.SHRINK: _shrink,
    Ops.FLIP: _flip,
    Ops.WINDOW: _window,
    Ops.WINDOW_ADJOINT: _window_adjoint,
    Ops.GATHER: _gather,
    Ops.REDUCE: _reduce,
    Ops.SCAN: _scan,
    Ops.CONTIGUOUS: _same,
    Ops.DETACH: _same,
    Ops.COPY: _same,
    Ops.ASSIGN: _assign,
}
