"""A long reduction with few results -> two: parts that cores can share, and the sum of the parts.

The parts depend on the shape alone, so a result has the same bits on any number of cores.
"""

from __future__ import annotations

from math import prod

from glassgrad.ir.ops import Ops
from glassgrad.ir.size import Size
from glassgrad.ir.uop import UOp

FEW_RESULTS = 16
LONG = 1 << 16  # elements; shorter reductions are not worth a second kernel
PARTS = 64
MOST_PARTS = 4096


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
