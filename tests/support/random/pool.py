"""The pool of known values that a random graph grows in, and its leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Shape
from glassgrad.ir.uop import UOp
from glassgrad.memory.view import View
from support.references.graph import Array, Cache, evaluate, numpy_dtype

FLOATS = (dtypes.float32, dtypes.float32, dtypes.float32, dtypes.float64)
INTS = (dtypes.int32, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.int8, dtypes.uint32)
LARGEST = 256.0  # no float grows beyond this
SIZES = (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 33)


class Refused(Exception):
    """This step cannot be taken here; another one is tried."""


@dataclass(frozen=True)
class Value:
    """A node, what it evaluates to, and whether every machine computes exactly these floats."""

    uop: UOp
    array: Array
    exact: bool

    @property
    def shape(self) -> Shape:
        return self.uop.shape

    @property
    def dtype(self) -> DType:
        return self.uop.dtype


@dataclass
class Pool:
    """The values made so far. `newest` is the last version of each buffer."""

    rng: Random
    numel: int  # no value has more elements
    values: list[Value] = field(default_factory=list)
    cache: Cache = field(default_factory=dict)
    newest: dict[UOp, UOp] = field(default_factory=dict)
    used: set[UOp] = field(default_factory=set)
    floats: tuple[DType, ...] = FLOATS
    is_smooth: bool = False  # floats are no quarters but any number: no two of them are equal

    def add(self, uop: UOp, exact: bool) -> Value:
        """File a node, unless it is too large or not tame."""
        if np.prod(uop.shape, dtype=np.int64) > self.numel:
            raise Refused
        array = evaluate(uop, self.cache)
        if uop.dtype.kind == "float":
            if array.size and not np.abs(array).max() <= LARGEST:  # nan is not <=
                raise Refused
            scaled = array * 1024.0  # exact floats are few bits long, so sums of them do not round
            exact = exact and bool((scaled == np.trunc(scaled)).all())
        value = Value(uop, array, exact or uop.dtype.kind != "float")
        self.values.append(value)
        self.used.update(uop.src)
        return value

    def pick(self, allowed: Callable[[Value], bool] = lambda value: True) -> Value:
        """A random value, more often a late or unused one, so that graphs grow deep, not wide."""
        found = [value for value in self.values if allowed(value)]
        if not found:
            raise Refused
        kind = self.rng.random()
        if kind < 0.3:
            return self.rng.choice(found[-4:])
        fresh = [value for value in found if value.uop not in self.used]
        return self.rng.choice(fresh if fresh and kind < 0.7 else found)

    def leaf(self, shape: Shape, dtype: DType) -> Value:
        """A buffer of small numbers: quarters for floats, so that they are exact."""
        numbers = np.random.default_rng(self.rng.getrandbits(32))
        low = 0 if dtype.kind in ("uint", "bool") else -8
        array = numbers.integers(low, 2 if dtype.kind == "bool" else 9, shape)
        data = array * 0.25 if dtype.kind == "float" else array
        if self.is_smooth and dtype.kind == "float":
            data = data + numbers.uniform(-0.1, 0.1, shape)
        array = np.ascontiguousarray(data.astype(numpy_dtype(dtype)))
        if self.rng.random() < 0.1:  # memory in another order: the strides are not row-major
            array = np.asfortranarray(array)
        uop = UOp(Ops.BUFFER, dtype, (), View.from_host(array))
        self.newest[uop] = uop
        return self.add(uop, not self.is_smooth)


def const(value: Any, dtype: DType) -> UOp:
    return UOp(Ops.CONST, dtype, (), value)


def is_float(value: Value) -> bool:
    return value.dtype.kind == "float"


def is_int(value: Value) -> bool:
    return value.dtype.kind in ("int", "uint")


def has_axes(value: Value) -> bool:
    return len(value.shape) > 0


def is_full(value: Value) -> bool:
    return len(value.shape) > 0 and 0 not in value.shape


def random_shape(pool: Pool) -> Shape:
    rng = pool.rng
    shape: list[int] = []
    for _ in range(rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4))):
        size = 0 if rng.random() < 0.01 else rng.choice(SIZES)
        if np.prod([*shape, size]) <= pool.numel:
            shape.append(size)
    return tuple(shape)


def random_dtype(pool: Pool) -> DType:
    kind = pool.rng.random()
    if kind < 0.7:
        return pool.rng.choice(pool.floats)
    return pool.rng.choice(INTS) if kind < 0.95 else dtypes.bool


def step_leaf(pool: Pool) -> Value:
    return pool.leaf(random_shape(pool), random_dtype(pool))


def step_iota(pool: Pool) -> Value:
    dtype = pool.rng.choice((dtypes.int32, dtypes.int64))
    return pool.add(UOp(Ops.IOTA, dtype, (), pool.rng.choice(SIZES)), True)
