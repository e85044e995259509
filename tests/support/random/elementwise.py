"""Random steps that work element by element."""

from __future__ import annotations

import numpy as np

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import broadcast
from glassgrad.ir.uop import UOp
from support.random.pool import Pool, Refused, Value, const, is_float, is_int, random_dtype


def partner(pool: Pool, x: Value) -> Value:
    """A value of x's dtype whose shape broadcasts with x's: found, a constant, or a leaf."""
    rng = pool.rng

    def fits(value: Value) -> bool:
        if value.dtype is not x.dtype:
            return False
        try:
            broadcast(value.shape, x.shape)
        except ValueError:
            return False
        return True

    kind = rng.random()
    if kind < 0.65:
        return pool.pick(fits)
    if kind < 0.8:
        number = rng.choice((0, 1, 2, 3)) * (0.25 if x.dtype.kind == "float" else 1)
        return pool.add(const(number, x.dtype), True)
    shape = tuple(1 if rng.random() < 0.3 else n for n in x.shape)
    return pool.leaf(shape[rng.randrange(len(shape) + 1) :], x.dtype)


def elementwise(pool: Pool, op: Ops, *sources: Value, dtype: DType, exact: bool = True) -> Value:
    uop = UOp(op, dtype, tuple(source.uop for source in sources))
    return pool.add(uop, exact and all(source.exact for source in sources))


ARITHMETIC = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.MAX, Ops.MIN)


def step_arithmetic(pool: Pool) -> Value:
    x = pool.pick(lambda value: value.dtype.kind != "bool")
    pair = (x, partner(pool, x))
    left, right = pair if pool.rng.random() < 0.5 else pair[::-1]
    return elementwise(pool, pool.rng.choice(ARITHMETIC), left, right, dtype=x.dtype)


def step_comparison(pool: Pool) -> Value:
    x = pool.pick(lambda value: value.exact)
    y = partner(pool, x)
    if not y.exact:
        raise Refused
    op = pool.rng.choice((Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE))
    return elementwise(pool, op, x, y, dtype=dtypes.bool)


def step_where(pool: Pool) -> Value:
    x = pool.pick()
    y = partner(pool, x)
    wide = broadcast(x.shape, y.shape)
    stand_in = Value(UOp(Ops.EXPAND, dtypes.bool, (), wide), x.array, True)
    return elementwise(pool, Ops.WHERE, partner(pool, stand_in), x, y, dtype=x.dtype)


def step_bits(pool: Pool) -> Value:
    x = pool.pick(lambda value: not is_float(value))
    op = pool.rng.choice((Ops.AND, Ops.OR, Ops.XOR))
    return elementwise(pool, op, x, partner(pool, x), dtype=x.dtype)


def step_shift(pool: Pool) -> Value:
    x = pool.pick(is_int)
    by = pool.add(const(pool.rng.randrange(4), x.dtype), True)
    return elementwise(pool, pool.rng.choice((Ops.SHL, Ops.SHR)), x, by, dtype=x.dtype)


def step_division(pool: Pool) -> Value:
    """By a divisor that is not 0 (and not -1, which overflows for the smallest int)."""
    x = pool.pick(is_int)
    if pool.rng.random() < 0.7:
        by = pool.add(const(pool.rng.choice((1, 2, 3, 5, 8)), x.dtype), True)
    else:
        by = partner(pool, x)
        if not ((by.array != 0) & (by.array.astype(np.int64) != -1)).all():
            raise Refused
    op = pool.rng.choice((Ops.FLOORDIV, Ops.FLOORMOD))
    return elementwise(pool, op, x, by, dtype=x.dtype)


def step_smooth(pool: Pool) -> Value:
    """The float functions, each where it is well conditioned."""
    x = pool.pick(is_float)
    small = float(np.abs(x.array).max(initial=0.0))
    least = float(x.array.min(initial=1.0))
    away = float(np.abs(x.array).min(initial=1.0))
    allowed = [Ops.NEG]
    allowed += [Ops.SIN] if small <= 50 else []
    allowed += [Ops.EXP2] if small <= 6 else []
    allowed += [Ops.SQRT, Ops.LOG2] if least >= 0.25 else []
    allowed += [Ops.RECIPROCAL] if away >= 0.25 else []
    allowed += [Ops.TRUNC] if x.exact else []
    op = pool.rng.choice(allowed)
    return elementwise(pool, op, x, dtype=x.dtype, exact=op in (Ops.NEG, Ops.TRUNC))


def step_ratio(pool: Pool) -> Value:
    x = pool.pick(is_float)
    by = partner(pool, x)
    if float(np.abs(by.array).min(initial=1.0)) < 0.25:
        raise Refused
    return elementwise(pool, Ops.FDIV, x, by, dtype=x.dtype, exact=False)


def step_cast(pool: Pool) -> Value:
    x = pool.pick(lambda value: value.exact)
    dtype = random_dtype(pool)
    return elementwise(pool, Ops.CAST, x, dtype=dtype) if dtype is not x.dtype else x


def step_bitcast(pool: Pool) -> Value:
    pairs = {dtypes.float32: dtypes.int32, dtypes.int32: dtypes.uint32, dtypes.uint8: dtypes.int8}
    x = pool.pick(lambda value: value.dtype in pairs and value.exact)
    if is_float(x) and not x.array.all():  # 0.0 and -0.0 are equal, but their bits are not
        raise Refused
    return elementwise(pool, Ops.BITCAST, x, dtype=pairs[x.dtype])
