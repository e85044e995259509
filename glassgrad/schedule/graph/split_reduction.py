"""Split long reductions and scans with few results into parts that cores can share.

The parts depend on the shape alone, so results are bit-identical on any number of cores.
"""

from __future__ import annotations

from math import prod

from glassgrad.base.dtype import dtypes
from glassgrad.ir.facts import identity
from glassgrad.ir.ops import Ops
from glassgrad.ir.size import Size
from glassgrad.ir.uop import UOp, const

MIN_PARALLEL_RESULTS = 16  # with as many results, cores share them instead
MIN_SPLIT_LENGTH = 1 << 16  # elements; shorter reductions do not pay for a second kernel
PARTS = 64  # of a long axis
MAX_PARTS = 4096  # if an existing axis numbers the parts
MAX_SCAN_PARTS = 128  # parts of a scan
SCAN_ALIGNMENT = 32  # elements: parts of a scan are multiples of this, for whole vectors
ROW_PARTS = (16, 8)  # parts of the rows of a large matrix
MIN_ROWS_PER_PART = 64  # rows per part
MIN_MATRIX_ELEMENTS = 1 << 22  # elements: the matrix exceeds the cache


def split_reduction(node: UOp) -> UOp:
    """sum(x)  ->  sum(sum(x, inner axes)), where cores have nothing else to share"""
    x, (op, axes) = node.src[0], node.arg
    shape = x.shape
    count = prod(shape[axis] for axis in axes)
    if isinstance(prod(shape), Size) or op is Ops.ASSIGN:
        return node
    if prod(node.shape) >= MIN_PARALLEL_RESULTS:
        return _split_rows(node)
    if count < MIN_SPLIT_LENGTH:
        return node
    first, rest = axes[0], axes[1:]
    if rest and MIN_PARALLEL_RESULTS <= shape[first] <= MAX_PARTS:
        return _reduce(_reduce(x, op, rest), op, (first,))
    if shape[first] < PARTS:
        return node
    return _split_axis(x, op, axes)


def _reduce(x: UOp, op: Ops, axes: tuple[int, ...]) -> UOp:
    return UOp(Ops.REDUCE, x.dtype, (x,), (op, axes))


def _split_axis(x: UOp, op: Ops, axes: tuple[int, ...]) -> UOp:
    """Split the first axis into PARTS contiguous parts, and reduce the remainder separately."""
    shape, first = x.shape, axes[0]
    length = shape[first] // PARTS
    main_size = length * PARTS
    split_shape = (*shape[:first], PARTS, length, *shape[first + 1 :])
    main = UOp(Ops.RESHAPE, x.dtype, (_slice(x, first, 0, main_size),), split_shape)
    inner = tuple([axis + 1 for axis in axes])
    result = _reduce(_reduce(main, op, inner), op, (first,))
    if main_size == shape[first]:
        return result
    tail = _reduce(_slice(x, first, main_size, shape[first]), op, axes)
    return UOp(op, x.dtype, (result, tail))


def _split_rows(node: UOp) -> UOp:
    """sum of rows  ->  sum of the sums of 16 parts: each core reads whole rows"""
    x, (op, axes) = node.src[0], node.arg
    axis, count = axes[0], x.shape[axes[0]]
    matrix = max(x.src if x.op is Ops.MUL else (x,), key=lambda source: prod(source.shape))
    # each element is read once
    is_large = prod(x.shape) >= MIN_MATRIX_ELEMENTS and matrix.shape == x.shape
    fitting = [n for n in ROW_PARTS if count % n == 0 and count // n >= MIN_ROWS_PER_PART]
    if len(axes) > 1 or not fitting or not is_large or not _is_outermost(matrix, axis):
        return node
    parts, shape = fitting[0], x.shape
    split_shape = (*shape[:axis], parts, count // parts, *shape[axis + 1 :])
    split = UOp(Ops.RESHAPE, x.dtype, (x,), split_shape)
    order = (axis, *[a for a in range(len(split_shape)) if a != axis])
    sums = _reduce(UOp(Ops.PERMUTE, x.dtype, (split,), order), op, (axis + 1,))
    return _reduce(UOp(Ops.CONTIGUOUS, x.dtype, (sums,)), op, (0,))


def _is_outermost(matrix: UOp, axis: int) -> bool:
    """True if this axis is the outermost of a buffer in memory."""
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


def _slice(x: UOp, axis: int, start: int, stop: int) -> UOp:
    if (start, stop) == (0, x.shape[axis]):
        return x
    box = tuple([(start, stop) if a == axis else (0, n) for a, n in enumerate(x.shape)])
    return UOp(Ops.SHRINK, x.dtype, (x,), box)


def split_scan(node: UOp) -> UOp:
    """scan(x)  ->  scan(parts of x) + the scan of the parts' totals before each part"""
    x, (op, axis) = node.src[0], node.arg
    size, shape = node.shape[axis], node.shape
    if (
        isinstance(size, Size)
        or size < MIN_SPLIT_LENGTH
        or prod(shape) // size >= MIN_PARALLEL_RESULTS
    ):
        return node
    parts = next((n for n in range(MAX_SCAN_PARTS, 1, -1) if size % (n * SCAN_ALIGNMENT) == 0), 1)
    if op is Ops.MULACC or parts == 1:
        return node
    split = UOp(
        Ops.RESHAPE, x.dtype, (x,), (*shape[:axis], parts, size // parts, *shape[axis + 1 :])
    )
    inner = UOp(Ops.SCAN, x.dtype, (split,), (op, axis + 1))
    sums = UOp(Ops.SCAN, x.dtype, (_reduce(split, op, (axis + 1,)),), (op, axis))
    joined = UOp(op, x.dtype, (_carry_in(sums, op, axis), inner))
    return UOp(Ops.RESHAPE, x.dtype, (joined,), shape)


def _carry_in(sums: UOp, op: Ops, axis: int) -> UOp:
    """The total before each part, the neutral element before the first; with a trailing axis of
    1.
    """
    shape, count = sums.shape, sums.shape[axis]
    padding = tuple([(1, 0) if a == axis else (0, 0) for a in range(len(shape))])
    shifted = UOp(Ops.PAD, sums.dtype, (_slice(sums, axis, 0, count - 1),), padding)
    neutral = const(identity(op, sums.dtype), sums.dtype)
    if neutral.arg != 0:  # padding gives 0
        positions = UOp(Ops.IOTA, dtypes.int32, (), count)
        ones = (1,) * (len(shape) - 1 - axis)
        is_first = UOp(Ops.RESHAPE, dtypes.int32, (positions,), (count, *ones)).eq(0)
        shifted = is_first.where(neutral, shifted)
    return UOp(Ops.RESHAPE, sums.dtype, (shifted,), (*shape[: axis + 1], 1, *shape[axis + 1 :]))
