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
ROW_PARTS = (16, 8)  # of the rows of a large matrix that are summed
FEWEST_ROWS = 64  # in a part
LARGE = 1 << 22  # elements that are read from memory rather than from a cache


def split_long(node: UOp) -> UOp:
    """sum(x)  ->  sum(sum(x, inner axes)), where there is nothing else to share among cores"""
    x, (op, axes) = node.src[0], node.arg
    shape = x.shape
    count = prod(shape[axis] for axis in axes)
    if isinstance(prod(shape), Size) or op is Ops.ASSIGN:
        return node
    if prod(node.shape) >= FEW_RESULTS:
        return _split_rows(node)
    if count < LONG:
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


def _split_rows(node: UOp) -> UOp:
    """sum of rows  ->  sum of the sums of 16 parts: cores read whole rows instead of pieces"""
    x, (op, axes) = node.src[0], node.arg
    axis, count = axes[0], x.shape[axes[0]]
    matrix = max(x.src if x.op is Ops.MUL else (x,), key=lambda source: prod(source.shape))
    is_large = prod(x.shape) >= LARGE and matrix.shape == x.shape  # each element is read once
    fitting = [n for n in ROW_PARTS if count % n == 0 and count // n >= FEWEST_ROWS]
    if len(axes) > 1 or not fitting or not is_large or not _is_outermost(matrix, axis):
        return node
    parts, shape = fitting[0], x.shape
    runs = (*shape[:axis], parts, count // parts, *shape[axis + 1 :])
    apart = UOp(Ops.RESHAPE, x.dtype, (x,), runs)
    order = (axis, *[a for a in range(len(runs)) if a != axis])
    sums = _reduce(UOp(Ops.PERMUTE, x.dtype, (apart,), order), op, (axis + 1,))
    return _reduce(UOp(Ops.CONTIGUOUS, x.dtype, (sums,)), op, (0,))


def _is_outermost(matrix: UOp, axis: int) -> bool:
    """Is this axis the first along which a buffer lies in memory?"""
    while matrix.op in (Ops.PERMUTE, Ops.RESHAPE):
        if matrix.op is Ops.PERMUTE:
            axis = matrix.arg[axis]
        else:
            before = [a for a, n in enumerate(matrix.src[0].shape) if n != 1]
            after = [a for a, n in enumerate(matrix.shape) if n != 1]
            if len(before) != len(after) or axis not in after:
                return False
            axis = before[after.index(axis)]
        matrix = matrix.src[0]
    longer = [a for a, n in enumerate(matrix.shape) if n != 1]
    return matrix.op is Ops.BUFFER and len(longer) > 1 and axis == longer[0]


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
