"""Random movement ops, and ops that materialize a value or write it to memory."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Shape
from glassgrad.ir.uop import UOp
from glassgrad.memory.view import View
from support.random.elementwise import elementwise
from support.random.pool import SIZES, Pool, Refused, Value, const, has_axes, is_full
from support.references.graph import numpy_dtype


def moved(pool: Pool, op: Ops, x: Value, arg: Any) -> Value:
    return pool.add(UOp(op, x.dtype, (x.uop,), arg), x.exact)


def random_factors(rng: Random, numel: int) -> Shape:
    """A shape of this many elements."""
    shape: list[int] = []
    while numel > 1 and len(shape) < 4:
        divisors = [n for n in range(2, min(numel, 64) + 1) if numel % n == 0]
        size = rng.choice([*divisors, numel])
        shape.append(size)
        numel //= size
    shape += [numel] if numel != 1 else []
    if rng.random() < 0.3:
        shape.insert(rng.randrange(len(shape) + 1), 1)
    return tuple(shape)


def step_reshape(pool: Pool) -> Value:
    x = pool.pick()
    if 0 in x.shape:
        return moved(pool, Ops.RESHAPE, x, (*x.shape, 1))
    return moved(pool, Ops.RESHAPE, x, random_factors(pool.rng, x.array.size))


def step_permute(pool: Pool) -> Value:
    x = pool.pick(lambda value: len(value.shape) > 1)
    order = list(range(len(x.shape)))
    pool.rng.shuffle(order)
    return moved(pool, Ops.PERMUTE, x, tuple(order))


def step_expand(pool: Pool) -> Value:
    x = pool.pick(lambda value: 1 in value.shape)
    sizes = [pool.rng.choice((2, 3, 5, 8)) if n == 1 else n for n in x.shape]
    return moved(pool, Ops.EXPAND, x, tuple(sizes))


def step_pad(pool: Pool) -> Value:
    x = pool.pick(has_axes)
    pairs = [(pool.rng.choice((0, 0, 1, 2)), pool.rng.choice((0, 0, 1, 3))) for _ in x.shape]
    return moved(pool, Ops.PAD, x, tuple(pairs))


def random_box(rng: Random, shape: Shape) -> tuple[tuple[int, int], ...]:
    pairs = []
    for n in shape:
        start = rng.randrange(n) if n and rng.random() < 0.5 else 0
        stop = rng.randrange(start + 1, n + 1) if n and rng.random() < 0.5 else n
        pairs.append((start, stop))
    return tuple(pairs)


def step_shrink(pool: Pool) -> Value:
    x = pool.pick(has_axes)
    return moved(pool, Ops.SHRINK, x, random_box(pool.rng, x.shape))


def random_axes(rng: Random, ndim: int) -> tuple[int, ...]:
    """At least one axis."""
    return tuple(sorted(rng.sample(range(ndim), rng.randrange(1, ndim + 1))))


def step_flip(pool: Pool) -> Value:
    x = pool.pick(has_axes)
    return moved(pool, Ops.FLIP, x, random_axes(pool.rng, len(x.shape)))


def step_window(pool: Pool) -> Value:
    x = pool.pick(is_full)
    axis = pool.rng.randrange(len(x.shape))
    dilation = pool.rng.choice((1, 1, 2, 3))
    most = (x.shape[axis] - 1) // dilation + 1
    size = pool.rng.randrange(1, min(most, 5) + 1)
    return moved(pool, Ops.WINDOW, x, (axis, size, pool.rng.choice((1, 1, 2, 3)), dilation))


def step_window_adjoint(pool: Pool) -> Value:
    x = pool.pick(lambda value: len(value.shape) > 1 and 0 not in value.shape)
    axis = pool.rng.randrange(len(x.shape) - 1)
    stride, dilation = pool.rng.choice((1, 1, 2, 3)), pool.rng.choice((1, 1, 2, 3))
    reach = (x.shape[axis] - 1) * stride + (x.shape[-1] - 1) * dilation + 1
    n = reach + pool.rng.choice((0, 0, 1, 2))
    return moved(pool, Ops.WINDOW_ADJOINT, x, (axis, n, stride, dilation))


def step_gather(pool: Pool) -> Value:
    """Indices are a leaf or made of a value; some lie outside."""
    rng = pool.rng
    x = pool.pick(is_full)
    axis = rng.randrange(len(x.shape))
    shape = list(x.shape)
    shape[axis] = rng.choice(SIZES)
    if np.prod(shape) > pool.numel:
        raise Refused
    numbers = np.random.default_rng(rng.getrandbits(32))
    dtype = rng.choice((dtypes.int32, dtypes.int64))
    low, high = (-1, x.shape[axis] + 1) if rng.random() < 0.2 else (0, x.shape[axis])
    data = numbers.integers(low, high, shape).astype(numpy_dtype(dtype))
    index = pool.add(UOp(Ops.BUFFER, dtype, (), View.from_host(data)), True)
    if rng.random() < 0.3:
        index = elementwise(pool, Ops.ADD, index, pool.add(const(1, dtype), True), dtype=dtype)
    return pool.add(UOp(Ops.GATHER, x.dtype, (x.uop, index.uop), axis), x.exact)


# ---------------------------------------------------------------------- memory


def step_contiguous(pool: Pool) -> Value:
    x = pool.pick()
    return pool.add(UOp(Ops.CONTIGUOUS, x.dtype, (x.uop,)), x.exact)


def random_chain(rng: Random, shape: Shape) -> tuple[tuple[tuple[Ops, Any], ...], Shape]:
    """Movement that picks a part of a target, and the part's shape."""
    if not shape or 0 in shape or rng.random() < 0.4:
        return (), shape
    box = random_box(rng, shape)
    chain: list[tuple[Ops, Any]] = [(Ops.SHRINK, box)]
    shape = tuple(stop - start for start, stop in box)
    if rng.random() < 0.3:
        chain.append((Ops.FLIP, random_axes(rng, len(shape))))
    if rng.random() < 0.3:
        order = tuple(rng.sample(range(len(shape)), len(shape)))
        chain.append((Ops.PERMUTE, order))
        shape = tuple(shape[axis] for axis in order)
    return tuple(chain), shape


def step_assign(pool: Pool) -> Value:
    """The newest version of a buffer gets a value written into it, or into a part of it."""
    rng = pool.rng
    if not pool.newest:
        raise Refused
    buffer = rng.choice(list(pool.newest))
    target = pool.newest[buffer]
    chain, shape = random_chain(rng, target.shape)

    def fits(value: Value) -> bool:
        if value.dtype is not target.dtype or len(value.shape) > len(shape):
            return False
        pairs = zip(value.shape[::-1], shape[::-1], strict=False)
        return all(n in (1, wide) for n, wide in pairs)

    x = pool.pick(fits)
    uop = x.uop
    if x.shape != shape:
        uop = UOp(Ops.RESHAPE, x.dtype, (uop,), (1,) * (len(shape) - len(x.shape)) + x.shape)
        uop = UOp(Ops.EXPAND, x.dtype, (uop,), shape)
    was_exact = next(value.exact for value in pool.values if value.uop is target)
    value = pool.add(UOp(Ops.ASSIGN, target.dtype, (target, uop), chain), was_exact and x.exact)
    pool.newest[buffer] = value.uop
    return value


KEPT = (Ops.REDUCE, Ops.SCAN, Ops.CONTIGUOUS)


def step_assign_twice(pool: Pool) -> Value:
    """A materialized value is written twice to a buffer, at other indices or in other order."""
    rng = pool.rng
    buffer = rng.choice(list(pool.newest))
    room = buffer.shape

    def fits(value: Value) -> bool:
        is_kept = value.uop.op in KEPT and value.dtype is buffer.dtype and is_full(value)
        sizes = zip(value.shape, room, strict=False)
        return is_kept and len(value.shape) == len(room) and all(n <= most for n, most in sizes)

    x = pool.pick(fits)
    for _ in range(2):
        starts = [rng.randrange(most - n + 1) for n, most in zip(x.shape, room, strict=True)]
        box = tuple([(start, start + n) for start, n in zip(starts, x.shape, strict=True)])
        chain: list[tuple[Ops, Any]] = [] if x.shape == room else [(Ops.SHRINK, box)]
        if rng.random() < 0.6:
            chain.append((Ops.FLIP, random_axes(rng, len(box))))
        target = pool.newest[buffer]
        value = pool.add(UOp(Ops.ASSIGN, target.dtype, (target, x.uop), tuple(chain)), False)
        pool.newest[buffer] = value.uop
    return value
