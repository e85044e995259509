"""Indexing with tensors: gather, scatter, lookups, one-hot."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.ops.table import Choice, Op, by_name
from fuzz.pool import NotApplicable, Pool, axes, full, numbers, smaller, wide_floats
from fuzz.programs import Array, Shape


def indices(pool: Pool, shape: Shape, size: int, has_negatives: bool = False) -> str:
    """A leaf of valid indices for an axis of this size."""
    if not size:
        raise NotApplicable
    low = -size if has_negatives else 0
    return pool.leaf(shape, pool.one_of(("int32", "int32", "int64")), low, size)


def _lookup(pool: Pool) -> Choice:
    name = pool.pick(full)
    shape = pool[name].shape
    where = pool.one_of(((), (pool.size(),), (pool.size(),), (2, 3)))
    if not pool.fits((*where, *shape[1:])):
        raise NotApplicable
    return [name, indices(pool, where, shape[0], True)], {}


def _lookup_inside(pool: Pool) -> Choice:
    name = pool.pick(full, axes(2))
    shape = pool[name].shape
    where = (pool.size(),)
    if not pool.fits((shape[0], *where, *shape[2:])):
        raise NotApplicable
    return [name, indices(pool, where, shape[1], True)], {}


def _lookup_twice(pool: Pool) -> Choice:
    name = pool.pick(full, axes(2))
    shape = pool[name].shape
    where = (pool.size(),)
    if not pool.fits((*where, *shape[2:])):
        raise NotApplicable
    return [name, indices(pool, where, shape[0]), indices(pool, where, shape[1], True)], {}


def _along(pool: Pool, shape: Shape, axis: int) -> Shape:
    """A shape of indices: any length along the axis, at most that of the value along others."""
    return tuple(
        pool.size() if i == axis else pool.rng.randint(min(n, 1), n) if pool.chance(0.2) else n
        for i, n in enumerate(shape)
    )


def _gather(pool: Pool) -> Choice:
    name = pool.pick(full)
    shape = pool[name].shape
    axis = pool.rng.randrange(len(shape))
    return [name, indices(pool, _along(pool, shape, axis), shape[axis])], {"axis": axis}


def _part(x: Array, index: Array, axis: int) -> Array:
    return x[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(index.shape))]


def _numpy_gather(x: Array, index: Array, axis: int) -> Array:
    return np.take_along_axis(_part(x, index, axis), index.astype(np.int64), axis)


def _scatter(pool: Pool) -> Choice:
    name = pool.pick(full, numbers, smaller(2000))
    x = pool[name]
    axis = pool.rng.randrange(len(x.shape))
    shape = _along(pool, x.shape, axis)
    source = pool.leaf(shape, x.dtype)
    return [name, indices(pool, shape, x.shape[axis]), source], {"axis": axis}


def _numpy_scatter(operation: Any) -> Any:
    def scatter(x: Array, index: Array, source: Array, axis: int) -> Array:
        out = x.copy()
        key = list(np.indices(index.shape))
        key[axis] = index.astype(np.int64)
        if operation is None:
            out[tuple(key)] = source  # the last write wins
        else:
            operation.at(out, tuple(key), source)
        return out

    return scatter


def _one_hot(pool: Pool) -> Choice:
    shape = (pool.size(),) if pool.chance(0.6) else (2, pool.size())
    count = max(1, pool.size())
    if not pool.fits((*shape, count)):
        raise NotApplicable
    return [indices(pool, shape, count)], {"count": count}


def _arange(pool: Pool) -> Choice:
    dtype = pool.one_of((*pool.float_dtypes[:1], "int32", "int64"))
    return [], {"n": pool.size(), "start": pool.one_of((0, -2)), "dtype": dtype}


def _numpy_arange(n: int, start: int, dtype: str) -> Array:
    stored = np.float64 if dtype.startswith(("f", "b")) else np.dtype(dtype)
    return np.arange(start, start + n).astype(stored)


def _full(pool: Pool) -> Choice:
    return [], {"shape": pool.shape(), "value": pool.one_of((0, 1, 2)), "dtype": pool.dtype()}


def _numpy_full(shape: Shape, value: int, dtype: str) -> Array:
    stored = np.float64 if dtype.startswith(("f", "bf")) else np.dtype(dtype)
    return np.full(shape, value, np.float64).astype(stored)


def _eye(pool: Pool) -> Choice:
    n = pool.size()
    if not pool.fits((n, n)):
        raise NotApplicable
    return [], {"n": n, "dtype": pool.float_dtype()}


def _keep(x: Array, *more: Any) -> Array:
    return x


def _masked(pool: Pool) -> Choice:
    """A mask of the same shape, and a fixed number of elements, so that the shape is known."""
    name = pool.pick(full, numbers, smaller(2000))
    mask = pool.leaf(pool[name].shape, "bool")
    return [name, mask], {"size": max(1, pool.size())}


def _numpy_masked(x: Array, mask: Array, size: int) -> Array:
    found = x[mask][:size]
    return np.concatenate([found, np.zeros(size - len(found), x.dtype)])


def _upsample(pool: Pool) -> Choice:
    name = pool.pick(full, numbers, axes(3, 4))
    shape = pool[name].shape
    times = tuple(pool.one_of((1, 2, 3)) for _ in shape[2:])
    if not pool.fits((pool[name].size, *times)):
        raise NotApplicable
    return [name], {"size": tuple(n * k for n, k in zip(shape[2:], times, strict=True))}


def _nearest(x: Array, size: Shape) -> Array:
    for axis, n in enumerate(size, 2):
        x = np.repeat(x, n // x.shape[axis], axis)
    return x


def _linear(x: Array, size: Shape) -> Array:
    """Pixel centres are at half-integers; the values beyond the outermost ones are constant."""
    for axis, n in enumerate(size, 2):
        length = x.shape[axis]
        position = np.clip((np.arange(n) + 0.5) * length / n - 0.5, 0, length - 1)
        low = np.floor(position).astype(np.int64)
        weight = (position - low).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
        first, second = (np.take(x, np.minimum(low + k, length - 1), axis) for k in (0, 1))
        x = first * (1 - weight) + second * weight
    return x


def _upsample_floats(pool: Pool) -> Choice:
    names, args = _upsample(pool)
    if not wide_floats(pool[names[0]]):
        raise NotApplicable
    return names, args


INDEXING = [
    Op("lookup", "{0}[{1}]", lambda x, i: x[i], _lookup, "move", weight=1.5),
    Op("lookup inside", "{0}[:, {1}]", lambda x, i: x[:, i], _lookup_inside, "move"),
    Op("lookup twice", "{0}[{1}, {2}]", lambda x, i, j: x[i, j], _lookup_twice, "move"),
    Op("gather", "{0}.gather({axis}, {1})", _numpy_gather, _gather, "move", weight=1.5),
    Op("scatter", "{0}.scatter({axis}, {1}, {2})", _numpy_scatter(None), _scatter, "move",
       weight=0.7),
    Op("scatter add", "{0}.scatter_add({axis}, {1}, {2})", _numpy_scatter(np.add), _scatter,
       "exact", weight=0.7),
    Op("scatter max", '{0}.scatter_reduce({axis}, {1}, {2}, "amax")', _numpy_scatter(np.maximum),
       _scatter, "move", weight=0.4),
    Op("one_hot", "{0}.one_hot({count})", lambda i, count: np.eye(count, dtype=np.int32)[i],
       _one_hot, "move", lambda names, args: "int32", weight=0.5, is_smooth=False),
    Op("arange", "Tensor.arange({start}, {start} + {n}, dtype={dtype})", _numpy_arange, _arange,
       "move", by_name, weight=0.5),
    Op("masked_select", "{0}.masked_select({1}, size={size})", _numpy_masked, _masked, "move",
       weight=0.6),
    Op("nearest", '{0}.interpolate({size}, mode="nearest")', _nearest, _upsample, "move",
       weight=0.4),
    Op("linear", '{0}.interpolate({size}, mode="linear")', _linear, _upsample_floats, weight=0.4),
    Op("full", "Tensor.full({shape}, {value}, dtype={dtype})", _numpy_full, _full, "move", by_name,
       weight=0.4),
    Op("eye", "Tensor.eye({n}, dtype={dtype})", lambda n, dtype: np.eye(n), _eye, "move", by_name,
       weight=0.3),
]  # fmt: skip
