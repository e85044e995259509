"""Reductions, scans, sorting and normalizations along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz.ops.table import Choice, Op, boolean, floating, index, summed, with_index
from fuzz.pool import Pool, axes, exact, floats, full, numbers, smaller, some, wide_floats
from fuzz.programs import Array


def reduced(*conditions: Callable[[Any], Any]) -> Callable[[Pool], Choice]:
    """Choose a value, and one, two or all of its axes."""

    def choose(pool: Pool) -> Choice:
        name = pool.pick(*conditions)
        ndim = len(pool[name].shape)
        axis: Any = None
        if ndim and pool.chance(0.85):
            axis = pool.axis(name)
            if ndim > 1 and pool.chance(0.25):
                axis = tuple(sorted(pool.rng.sample(range(ndim), 2)))
        return [name], {"axis": axis, "keep": pool.chance(0.4)}

    return choose


def along(*conditions: Callable[[Any], Any]) -> Callable[[Pool], Choice]:
    def choose(pool: Pool) -> Choice:
        name = pool.pick(axes(1), *conditions)
        return [name], {"axis": pool.axis(name)}

    return choose


def _wide(x: Array) -> Array:
    """Convert to at least 32 bits, the accumulator of sums."""
    if x.dtype == bool:
        return x.astype(np.int32)
    if x.dtype.kind in "iu" and x.dtype.itemsize < 4:
        return x.astype(np.int32 if x.dtype.kind == "i" else np.uint32)
    return x


def _reduction(function: Any) -> Callable[..., Array]:
    return lambda x, axis, keep: function(x, axis=axis, keepdims=keep)


def _sum(x: Array, axis: Any, keep: bool) -> Array:
    return np.sum(_wide(x), axis=axis, keepdims=keep, dtype=_wide(x).dtype)


def _prod(x: Array, axis: Any, keep: bool) -> Array:
    return np.prod(_wide(x), axis=axis, keepdims=keep, dtype=_wide(x).dtype)


def _variance(x: Array, axis: Any, keep: bool) -> Array:
    return np.var(x.astype(np.float64), axis=axis, keepdims=keep)


def _logsumexp(x: Array, axis: Any, keep: bool) -> Array:
    largest = x.max(axis=axis, keepdims=True)
    total = np.log(np.exp(x - largest).sum(axis=axis, keepdims=True)) + largest
    return total if keep else total.reshape(np.sum(x, axis=axis).shape)


def _norm(x: Array, axis: Any, keep: bool) -> Array:
    return np.sqrt(np.square(x).sum(axis=axis, keepdims=keep) + 0.25)


def _reduce(name: str, text: str, reference: Any, *conditions: Any, **more: Any) -> Op:
    return Op(name, text, reference, reduced(*conditions), **more)


REDUCE = "{axis}, keepdim={keep})"
REDUCE_OPS = [
    _reduce("sum", "{0}.sum(" + REDUCE, _sum, exactness="exact", result=summed, weight=4),
    _reduce("mean", "{0}.mean(" + REDUCE, _reduction(np.mean), floats, some, weight=1.5),
    _reduce("max", "{0}.max(" + REDUCE, _reduction(np.max), numbers, some, exactness="move",
            weight=2),
    _reduce("min", "{0}.min(" + REDUCE, _reduction(np.min), numbers, some, exactness="move"),
    _reduce("prod", "{0}.prod(" + REDUCE, _prod, smaller(60), exactness="exact", result=summed,
            weight=0.6),
    _reduce("any", "{0}.any(" + REDUCE, _reduction(np.any), exact, exactness="move",
            result=boolean, weight=0.4, is_smooth=False),
    _reduce("all", "{0}.all(" + REDUCE, _reduction(np.all), exact, exactness="move",
            result=boolean, weight=0.4, is_smooth=False),
    _reduce("var", "{0}.var({axis}, keepdim={keep}, correction=0)", _variance, floats, some,
            result=floating),
    _reduce("logsumexp", "{0}.logsumexp(" + REDUCE, _logsumexp, floats, some, floor=1.0),
    _reduce("norm", "({0}.square().sum({axis}, keepdim={keep}) + 0.25).sqrt()", _norm, wide_floats,
            weight=0.7),
]  # fmt: skip

# ---------------------------------------------------------------------- scans


def _scan(function: Any) -> Callable[..., Array]:
    return lambda x, axis: function(_wide(x), axis=axis, dtype=_wide(x).dtype)


def _logcumsumexp(x: Array, axis: int) -> Array:
    return np.logaddexp.accumulate(x, axis=axis)


def _running(function: Any) -> Callable[..., tuple[Array, Array]]:
    """The running extreme, and the index of its last occurrence."""

    def scan(x: Array, axis: int) -> tuple[Array, Array]:
        largest = function.accumulate(x, axis=axis)
        shape = [1] * x.ndim
        shape[axis] = -1
        steps = np.arange(x.shape[axis]).reshape(shape)
        return largest, np.maximum.accumulate(np.where(x == largest, steps, 0), axis).astype(
            np.int32
        )

    return scan


SCANS = [
    Op("cumsum", "{0}.cumsum({axis})", _scan(np.cumsum), along(), "exact", summed, weight=1.5),
    Op("cumprod", "{0}.cumprod({axis})", _scan(np.cumprod), along(smaller(60)), "exact", summed,
       weight=0.5),
    Op("cummax", "{0}.cummax({axis})", _running(np.maximum), along(full, numbers, exact),
       "move", with_index, weight=0.5),
    Op("cummin", "{0}.cummin({axis})", _running(np.minimum), along(full, numbers, exact),
       "move", with_index, weight=0.5),
    Op("logcumsumexp", "{0}.logcumsumexp({axis})", _logcumsumexp, along(floats, full), weight=0.5,
       floor=1.0),
]  # fmt: skip

# ---------------------------------------------------------------------- sorting


def _arg(function: Any) -> Callable[..., Array]:
    return lambda x, axis: function(x, axis=axis).astype(np.int32)


def _order(pool: Pool) -> Choice:
    name = pool.pick(full, numbers, smaller(300))
    return [name], {"axis": pool.axis(name), "descending": pool.chance(0.4)}


def _argsort(x: Array, axis: int, descending: bool) -> Array:
    if not descending:
        return np.argsort(x, axis=axis, kind="stable").astype(np.int32)
    flipped = np.flip(x, axis)
    order = np.flip(np.argsort(flipped, axis=axis, kind="stable"), axis)
    return (x.shape[axis] - 1 - order).astype(np.int32)


def _sort(x: Array, axis: int, descending: bool) -> tuple[Array, Array]:
    order = _argsort(x, axis, descending)
    return np.take_along_axis(x, order, axis), order


def _topk(pool: Pool) -> Choice:
    name = pool.pick(full, numbers, smaller(300))
    axis = pool.axis(name)
    k = pool.rng.randint(1, pool[name].shape[axis])
    return [name], {"k": k, "axis": axis, "largest": pool.chance(0.7)}


def _numpy_topk(x: Array, k: int, axis: int, largest: bool) -> tuple[Array, Array]:
    values, order = _sort(x, axis, largest)
    return np.take(values, range(k), axis), np.take(order, range(k), axis)


SORTING = [
    Op("argmax", "{0}.argmax({axis})", _arg(np.argmax), along(full, numbers, exact), "move", index,
       is_smooth=False),
    Op("argmin", "{0}.argmin({axis})", _arg(np.argmin), along(full, numbers, exact), "move", index,
       weight=0.5, is_smooth=False),
    Op("sort", "{0}.sort({axis}, {descending})", _sort, _order, "move", with_index, weight=0.4),
    Op("argsort", "{0}.argsort({axis}, {descending})", _argsort, _order, "move", index, weight=0.2,
       is_smooth=False),
    Op("topk", "{0}.topk({k}, {axis}, {largest})", _numpy_topk, _topk, "move", with_index,
       weight=0.3),
]  # fmt: skip

# ---------------------------------------------------------------------- normalizations


def softmax(x: Array, axis: int = -1) -> Array:
    exponentials = np.exp(x - x.max(axis, keepdims=True))
    return exponentials / exponentials.sum(axis, keepdims=True)


def log_softmax(x: Array, axis: int = -1) -> Array:
    y = x - x.max(axis, keepdims=True)
    return y - np.log(np.exp(y).sum(axis, keepdims=True))


def layernorm(x: Array, axis: Any = -1, eps: float = 0.03125) -> Array:
    centred = x - x.mean(axis, keepdims=True)
    return centred / np.sqrt(np.square(centred).mean(axis, keepdims=True) + eps)


def _unit(x: Array, axis: int) -> Array:
    return x / np.sqrt(np.square(x).sum(axis, keepdims=True) + 0.25)


NORMALIZATIONS = [
    Op("softmax", "{0}.softmax({axis})", softmax, along(floats, full), weight=1.5),
    Op("log_softmax", "{0}.log_softmax({axis})", log_softmax, along(floats, full), floor=1.0),
    Op("layernorm", "{0}.layernorm({axis}, eps=0.03125)", layernorm, along(floats, full)),
    Op("unit", "{0} / ({0}.square().sum({axis}, keepdim=True) + 0.25).sqrt()", _unit,
       along(wide_floats, full), weight=0.5),
]  # fmt: skip
REDUCTIONS = [*REDUCE_OPS, *SCANS, *SORTING, *NORMALIZATIONS]
