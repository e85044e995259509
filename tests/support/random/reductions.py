"""Random steps that reduce: alone, and in the shapes that networks are made of."""

from __future__ import annotations

import numpy as np

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.memory.view import View
from support.random.elementwise import elementwise
from support.random.movement import moved, random_axes
from support.random.pool import SIZES, Pool, Refused, Value, const, has_axes, is_float, is_full


def reduced(pool: Pool, op: Ops, x: Value, axes: tuple[int, ...], keepdim: bool = False) -> Value:
    exact = x.exact and op is not Ops.MUL
    value = pool.add(UOp(Ops.REDUCE, x.dtype, (x.uop,), (op, axes)), exact)
    if not keepdim:
        return value
    shape = tuple(1 if axis in axes else n for axis, n in enumerate(x.shape))
    return moved(pool, Ops.RESHAPE, value, shape)


def step_reduce(pool: Pool) -> Value:
    x = pool.pick(lambda value: has_axes(value) and value.dtype.kind != "bool")
    op = pool.rng.choice((Ops.ADD, Ops.ADD, Ops.MAX, Ops.MIN, Ops.MUL))
    axes = random_axes(pool.rng, len(x.shape))
    return reduced(pool, op, x, axes, keepdim=pool.rng.random() < 0.4)


def step_scan(pool: Pool) -> Value:
    x = pool.pick(lambda value: has_axes(value) and value.dtype.kind != "bool")
    op = pool.rng.choice((Ops.ADD, Ops.MAX, Ops.MIN, Ops.MUL, Ops.MULACC))
    axis = pool.rng.randrange(len(x.shape))
    if op is not Ops.MULACC:
        exact = x.exact and op is not Ops.MUL
        return pool.add(UOp(Ops.SCAN, x.dtype, (x.uop,), (op, axis)), exact)
    same = (x.dtype, x.shape)
    factor = pool.pick(lambda value: (value.dtype, value.shape) == same)
    return pool.add(UOp(Ops.SCAN, x.dtype, (x.uop, factor.uop), (op, axis)), exact=False)


def step_mean(pool: Pool) -> Value:
    x = pool.pick(lambda value: is_float(value) and is_full(value))
    axes = random_axes(pool.rng, len(x.shape))
    total = reduced(pool, Ops.ADD, x, axes, keepdim=pool.rng.random() < 0.7)
    count = x.array.size / total.array.size
    return elementwise(
        pool, Ops.MUL, total, pool.add(const(1 / count, x.dtype), False), dtype=x.dtype, exact=False
    )


def step_softmax(pool: Pool) -> Value:
    x = pool.pick(lambda value: is_float(value) and is_full(value))
    axis = (pool.rng.randrange(len(x.shape)),)
    top = reduced(pool, Ops.MAX, x, axis, keepdim=True)
    powers = elementwise(
        pool,
        Ops.EXP2,
        elementwise(pool, Ops.SUB, x, top, dtype=x.dtype),
        dtype=x.dtype,
        exact=False,
    )
    total = reduced(pool, Ops.ADD, powers, axis, keepdim=True)
    return elementwise(pool, Ops.FDIV, powers, total, dtype=x.dtype, exact=False)


def step_layernorm(pool: Pool) -> Value:
    x = pool.pick(lambda value: is_float(value) and is_full(value))
    axes = random_axes(pool.rng, len(x.shape))
    part = 1 / np.prod([x.shape[axis] for axis in axes])
    share = pool.add(const(part, x.dtype), False)

    def mean(value: Value) -> Value:
        total = reduced(pool, Ops.ADD, value, axes, keepdim=True)
        return elementwise(pool, Ops.MUL, total, share, dtype=x.dtype, exact=False)

    centred = elementwise(pool, Ops.SUB, x, mean(x), dtype=x.dtype)
    variance = mean(elementwise(pool, Ops.MUL, centred, centred, dtype=x.dtype))
    spread = elementwise(
        pool, Ops.ADD, variance, pool.add(const(0.25, x.dtype), True), dtype=x.dtype
    )
    root = elementwise(pool, Ops.SQRT, spread, dtype=x.dtype, exact=False)
    return elementwise(pool, Ops.FDIV, centred, root, dtype=x.dtype, exact=False)


def step_matmul(pool: Pool) -> Value:
    """x (…, m, k) and a new or found w (k, n) or (n, k): multiplied out and summed over k."""
    rng = pool.rng
    x = pool.pick(lambda value: len(value.shape) in (2, 3) and value.dtype.kind != "bool")
    k = x.shape[-1]
    if rng.random() < 0.3:
        w = pool.pick(
            lambda value: len(value.shape) == 2 and value.shape[1] == k and value.dtype is x.dtype
        )
    else:
        n = rng.choice(SIZES)
        turned = rng.random() < 0.5
        w = pool.leaf((k, n) if turned else (n, k), x.dtype)
        w = moved(pool, Ops.PERMUTE, w, (1, 0)) if turned else w
    rows = moved(pool, Ops.RESHAPE, x, (*x.shape[:-1], 1, k))
    # The products may be larger than any value that is kept: only their sum must fit.
    product = UOp(Ops.MUL, x.dtype, (rows.uop, w.uop))
    uop = UOp(Ops.REDUCE, x.dtype, (product,), (Ops.ADD, (len(product.shape) - 1,)))
    return pool.add(uop, x.exact and w.exact)


def step_one_hot(pool: Pool) -> Value:
    """sum(where(iota == index, table, 0)): a lookup written as a comparison."""
    rng = pool.rng
    table = pool.pick(lambda value: len(value.shape) == 2 and 0 not in value.shape)
    rows, width = table.shape
    count = rng.choice(SIZES)
    if count * rows * width > 4 * pool.numel:
        raise Refused
    numbers = np.random.default_rng(rng.getrandbits(32))
    data = numbers.integers(0, rows, (count, 1, 1)).astype(np.int32)
    index = UOp(Ops.BUFFER, dtypes.int32, (), View.from_host(data))
    line = UOp(Ops.RESHAPE, dtypes.int32, (UOp(Ops.IOTA, dtypes.int32, (), rows),), (rows, 1))
    hit = UOp(Ops.CMPEQ, dtypes.bool, (line, index))
    rest = const(0, table.dtype)
    chosen = UOp(Ops.WHERE, table.dtype, (hit, table.uop, rest))
    if table.dtype.kind == "bool":
        raise Refused
    return pool.add(UOp(Ops.REDUCE, table.dtype, (chosen,), (Ops.ADD, (1,))), table.exact)
