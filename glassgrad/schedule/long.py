"""Long reductions and scans with few rows -> parts that cores can share, and what joins them.

The parts depend on the shape alone, so a result has the same bits on any number of cores.
"""

from __future__ import annotations

from math import prod

from glassgrad.base.dtype import dtypes
from glassgrad.ir.facts import identity
from glassgrad.ir.ops import Ops
from glassgrad.ir.size import Size
from glassgrad.ir.uop import UOp, const

FEW_RESULTS = 16
LONG = 1 << 16  # elements; shorter reductions are not worth a second kernel
PARTS = 64
MOST_PARTS = 4096
SCAN_PARTS = 128
STEPS = 32  # parts of a scan are multiples of this: whole vectors


def split_long(node: UOp) -> UOp:
    """sum(x)  ->  sum(sum(x, inner axes)), where there is nothing else to share among cores"""
    x, (op, axes) = node.src[0], node.arg
    shape = x.shape
    count = prod(shape[axis] for axis in axes)
    if isinstance(count, Size) or prod(node.shape) >= FEW_RESULTS or count < LONG:
        return node
    first, rest = axes[0], axes[1:]
    if rest and FEW_RESULTS <= shape[first] <= MOST_PARTS:
        return _reduce(_reduce(x, op, rest), op, (first,))
    if shape[first] < PARTS:
        return node
    return _in_parts(x, op, axes)


def _reduce(x: UOp, op: Ops, axes: tuple[int, ...]) -> UOp:
    return UOp(Ops.REDUCE, x.dtype, (x,), (op, axes))


def _in_parts(x: UOp, op: Ops, axes: tuple[int, ...]) -> UOp:
    """The first axis as 64 runs, and what is left of it."""
    shape, first = x.shape, axes[0]
    length = shape[first] // PARTS
    whole = length * PARTS
    runs = (*shape[:first], PARTS, length, *shape[first + 1 :])
    main = UOp(Ops.RESHAPE, x.dtype, (_cut(x, first, 0, whole),), runs)
    inner = tuple([axis + 1 for axis in axes])
    result = _reduce(_reduce(main, op, inner), op, (first,))
    if whole == shape[first]:
        return result
    left = _reduce(_cut(x, first, whole, shape[first]), op, axes)
    return UOp(op, x.dtype, (result, left))


def _cut(x: UOp, axis: int, start: int, stop: int) -> UOp:
    if (start, stop) == (0, x.shape[axis]):
        return x
    box = tuple([(start, stop) if a == axis else (0, n) for a, n in enumerate(x.shape)])
    return UOp(Ops.SHRINK, x.dtype, (x,), box)


def split_scan(node: UOp) -> UOp:
    """scan(x)  ->  scan(parts of x) + what came before each part: the scan of the parts' sums"""
    x, (op, axis) = node.src[0], node.arg
    size, shape = node.shape[axis], node.shape
    if isinstance(size, Size) or size < LONG or prod(shape) // size >= FEW_RESULTS:
        return node
    parts = next((n for n in range(SCAN_PARTS, 1, -1) if size % (n * STEPS) == 0), 1)
    if op is Ops.MULACC or parts == 1:
        return node
    apart = UOp(
        Ops.RESHAPE, x.dtype, (x,), (*shape[:axis], parts, size // parts, *shape[axis + 1 :])
    )
    inner = UOp(Ops.SCAN, x.dtype, (apart,), (op, axis + 1))
    sums = UOp(Ops.SCAN, x.dtype, (_reduce(apart, op, (axis + 1,)),), (op, axis))
    joined = UOp(op, x.dtype, (_before(sums, op, axis), inner))
    return UOp(Ops.RESHAPE, x.dtype, (joined,), shape)


def _before(sums: UOp, op: Ops, axis: int) -> UOp:
    """What the part before ended with, and nothing before the first; an axis of 1 behind it."""
    shape, count = sums.shape, sums.shape[axis]
    around = tuple([(1, 0) if a == axis else (0, 0) for a in range(len(shape))])
    moved = UOp(Ops.PAD, sums.dtype, (_cut(sums, axis, 0, count - 1),), around)
    nothing = const(identity(op, sums.dtype), sums.dtype)
    if nothing.arg != 0:  # which is what padding is
        places = UOp(Ops.IOTA, dtypes.int32, (), count)
        ones = (1,) * (len(shape) - 1 - axis)
        is_first = UOp(Ops.RESHAPE, dtypes.int32, (places,), (count, *ones)).eq(0)
        moved = is_first.where(nothing, moved)
    return UOp(Ops.RESHAPE, sums.dtype, (moved,), (*shape[: axis + 1], 1, *shape[axis + 1 :]))
