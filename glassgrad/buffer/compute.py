"""One operation on views of memory -> a graph of one or a few nodes, computed at once."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import count

from glassgrad.base.config import BEAM, NOOPT
from glassgrad.base.dtype import ConstType, DType, dtypes
from glassgrad.buffer.literal import pack_numbers
from glassgrad.devices.protocol import Device as Machine
from glassgrad.devices.registry import Device
from glassgrad.engine.cache.graph_keys import Cache
from glassgrad.engine.launch.run import run
from glassgrad.engine.pipeline import plan_graph, realize
from glassgrad.engine.plan.plan import Plan
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.memory.layout import Ints
from glassgrad.memory.view import View
from glassgrad.memory.window import span

IOTA, THREEFRY = Ops.IOTA, Ops.THREEFRY
BUFFER, CAST, CONST, ASSIGN, EXPAND = Ops.BUFFER, Ops.CAST, Ops.CONST, Ops.ASSIGN, Ops.EXPAND
RESHAPE, REDUCE, CONTIGUOUS, WHERE = Ops.RESHAPE, Ops.REDUCE, Ops.CONTIGUOUS, Ops.WHERE
CMPLT, SHR, SHL, LOG2, SQRT, SIN = (
    Ops.CMPLT, Ops.SHR, Ops.SHL, Ops.LOG2, Ops.SQRT, Ops.SIN,
)  # fmt: skip
UINT64, FLOAT32 = dtypes.uint64, dtypes.float32


def buffer_node(view: View) -> UOp:
    return UOp(BUFFER, view.dtype, (), view)


def compute_value(value: UOp, device: str) -> View:
    """The value of a graph in memory of its own."""
    if 0 in value.shape:
        return View.empty(device, value.shape, value.dtype)
    return realize((value,), device)[0]


# Plans of binary ops by the layouts of their operands, without a graph key.
PLANS: Cache[tuple[Plan, Machine]] = Cache(1024)


def compute_binary(op: Ops, dtype: DType, left: UOp, right: UOp, device: str) -> View:
    """A binary op of two views or numbers. The plan is cached by their layouts."""
    one, two = left.arg, right.arg
    if not one.numel or one.device != two.device:
        return compute_value(UOp(op, dtype, (left, right)), device)
    leaves = (left,) if left is right else (left, right)
    layouts = (left.dtype, one.shape, one.strides, right.dtype, two.shape, two.strides)
    key = (op, dtype, len(leaves), *layouts, one.device, NOOPT.value, BEAM.value)
    ready = PLANS.get(key)
    if ready is None:
        machine = Device[one.device]
        plan = plan_graph((UOp(op, dtype, (left, right)),), leaves, machine)
        ready = PLANS[key] = plan, machine
    return run(ready[0], leaves, ready[1])[0]


def number_buffer(value: ConstType, dtype: DType, device: str) -> UOp:
    """A number in memory, so that one kernel serves all numbers."""
    # 0.0 and -0.0 are equal, so a cache cannot tell them apart.
    return _cached_number(value, dtype, device) if value else _number(value, dtype, device)


def _number(value: ConstType, dtype: DType, device: str) -> UOp:
    view = View.empty(device, (), dtype)
    view.storage.copyin(memoryview(pack_numbers([value], dtype)))
    return UOp(BUFFER, dtype, (), view)


_cached_number = lru_cache(maxsize=256, typed=True)(_number)


def cast(value: UOp, dtype: DType) -> UOp:
    return value if value.dtype is dtype else UOp(CAST, dtype, (value,))


def const(value: ConstType, dtype: DType) -> UOp:
    return UOp(CONST, dtype, (), value)


def reduce_node(op: Ops, value: UOp, axes: Ints) -> UOp:
    return UOp(REDUCE, value.dtype, (value,), (op, axes)) if axes else value


def write(target: View, value: UOp) -> None:
    """Write a value, or one number everywhere, to a view."""
    if 0 in target.shape:
        return
    if value.shape != target.shape:
        ones = UOp(RESHAPE, value.dtype, (value,), (1,) * len(target.shape))
        value = UOp(EXPAND, value.dtype, (ones,), target.shape)
    realize((UOp(ASSIGN, target.dtype, (buffer_node(target), value), ()),), target.device)


def copy(view: View) -> View:
    """A contiguous copy."""
    return compute_value(UOp(CONTIGUOUS, view.dtype, (buffer_node(view),)), view.device)


def may_overlap(one: View, other: View) -> bool:
    """True if two views may have a byte in common, in one storage or in two over one memory."""
    if not one.numel or not other.numel or not _same_kind(one, other):
        return False
    (low, high), (first, last) = _bytes(one), _bytes(other)
    return low <= last and first <= high


def _same_kind(one: View, other: View) -> bool:
    return one.storage is other.storage or one.device == other.device


def _bytes(view: View) -> tuple[int, int]:
    item, base = view.dtype.itemsize, view.storage.address
    low, high = span(view.window)
    return base + low * item, base + (high + 1) * item - 1


# ---------------------------------------------------------------------- values without operands


def iota(size: int, dtype: DType) -> UOp:
    return UOp(IOTA, dtype, (), size)


def lower_triangle(value: UOp, diagonal: int) -> UOp:
    """The value with zeros above a diagonal of the last two axes."""
    rows, columns = value.shape[-2:]
    row = UOp(RESHAPE, dtypes.int32, (iota(rows, dtypes.int32),), (rows, 1))
    limit = row + (diagonal + 1)
    below = UOp(CMPLT, dtypes.bool, (iota(columns, dtypes.int32), limit))
    return UOp(WHERE, value.dtype, (below, value, const(0, value.dtype)))


class Generator:
    """Random bits: a seed, and the number of calls so far."""

    def __init__(self, seed: int) -> None:
        self.restart(seed)

    def restart(self, seed: int) -> None:
        self.seed = seed & (1 << 64) - 1
        self.calls = count()

    def bits(self, size: int, device: str) -> UOp:
        """64 random bits for each of `size` elements. Each call has its own range of counters."""
        call = number_buffer(next(self.calls) << 40 & (1 << 64) - 1, UINT64, device)
        counters = cast(iota(size, dtypes.int64), UINT64) + call
        return UOp(THREEFRY, UINT64, (counters, number_buffer(self.seed, UINT64, device)))


def uniform(bits: UOp) -> UOp:
    """24 bits as a float32 in [0, 1)."""
    whole = UOp(SHR, UINT64, (bits, const(40, UINT64)))
    return cast(cast(whole, dtypes.int32), FLOAT32) * 2.0**-24


def normal(bits: UOp) -> UOp:
    """Normal random numbers by the Box-Muller transform of two uniform ones."""
    first = const(1.0, FLOAT32) - uniform(bits)
    second = uniform(UOp(SHL, UINT64, (bits, const(32, UINT64))))
    radius = UOp(SQRT, FLOAT32, (UOp(LOG2, FLOAT32, (first,)) * (-2 * math.log(2)),))
    return radius * UOp(SIN, FLOAT32, (second * (2 * math.pi),))


def integer_power(value: UOp, exponent: int) -> UOp:
    """An integer power of ints, by repeated squaring."""
    result: UOp | None = None
    while exponent:
        if exponent & 1:
            result = value if result is None else result * value
        exponent >>= 1
        value = value * value if exponent else value
    return const(1, value.dtype) + value * 0 if result is None else result
