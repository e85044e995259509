"""Read several streams of memory at once: the hardware prefetcher follows each only so far.

One core reads 18 GB/s from one stream and 30 GB/s from four. Streams in one page count as one, so
they should start in different pages.
"""

from __future__ import annotations

from math import prod

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.strides import stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.nest import binders_over, next_axis_number
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.shared.recipe_builder import MEMORY_BOUND_WORK, RecipeBuilder

STREAMS = 4  # streams read at a time
MIN_STREAM_DISTANCE = 1 << 16  # bytes between streams: 16 pages
VECTORS_PER_STEP = 2  # of a stream: a line on AVX2, two on AVX-512; more add nothing
PARTS_PER_CORE = 4  # parts per core, for load balance
CACHED_ROWS = (8, 4)  # adjacent rows that share the loads of a common operand
SHORT_ROW_VECTORS = 16  # below this many vectors, the horizontal add costs as much as the loads
MAX_SUMS_PER_ROW = 2  # sums of a row, for which unrolling rows pays


def read_in_streams(builder: RecipeBuilder, binder: UOp, axis: UOp) -> bool:
    """Shape a contiguous reduction as several streams.

    False, with nothing changed, if one stream is as good.
    """
    loads = [index for index in builder.loads(binder) if axis in index.ranges]
    rows = _rows_of(builder, binder, loads)
    if _has_rows_unrolled(builder, binder):
        return False
    streamed = [index for index in loads if rows is None or rows in index.ranges]
    size = axis.size * (1 if rows is None else rows.size) * streamed[0].dtype.itemsize
    streams = STREAMS // len(streamed)
    is_only_reduction = builder.binders(Ops.REDUCE) == [binder] and not builder.binders(Ops.STAGE)
    if (
        is_only_reduction
        and size > builder.target.l2_bytes
        and streams > 1
        and builder.is_memory_bound(binder)
    ):
        amount = VECTORS_PER_STEP * builder.lanes(binder)
        if rows is not None and _unroll_distant_rows(
            builder, rows, axis, streamed[0], (streams, amount)
        ):
            return True
        if _split_row(builder, axis, streamed[0].dtype.itemsize, (streams, amount)):
            return True
    if rows is None:
        return False
    if any(rows not in index.ranges for index in loads):
        return _unroll_adjacent_rows(builder, rows, axis, builder.lanes(binder), CACHED_ROWS)
    if _stores_rows(builder, rows) or not _is_cheap_to_unroll(builder, rows, axis):
        return False
    has_enough_rows = rows.size >= STREAMS * builder.target.cores
    fits_cache = size <= builder.target.l3_bytes // 2  # in memory, adjacent rows share a page
    return (
        has_enough_rows
        and fits_cache
        and _unroll_adjacent_rows(builder, rows, axis, builder.lanes(binder), (STREAMS,))
    )


def _rows_of(builder: RecipeBuilder, binder: UOp, loads: list[UOp]) -> UOp | None:
    """The innermost loop over rows; preferably one that some load does not depend on."""
    found: UOp | None = None
    inside = [r for stage in builder.binders(Ops.STAGE) for r in stage.bound if r in binder.ranges]
    for rows in reversed((*builder.nest.outer, *inside)):
        has_rows = [rows in index.ranges for index in loads]
        if rows.kind is AxisKind.LOOP and any(has_rows):
            if not all(has_rows):
                return rows
            found = found or rows
    return found


def _stores_rows(builder: RecipeBuilder, rows: UOp) -> bool:
    """True if more than one value per row is stored: unrolled rows would be many store streams."""
    for binder in builder.binders(Ops.STORE) + builder.binders(Ops.STAGE):
        bound = binder.bound
        own = bound[bound.index(rows) + 1 :] if rows in bound else bound
        if own and (rows in bound or rows in binder.ranges):
            return True
    return False


def _is_cheap_to_unroll(builder: RecipeBuilder, rows: UOp, axis: UOp) -> bool:
    """True if all computations of a row can be unrolled for several rows; long rows only for plain
    sums.
    """
    sums = [binder for binder in builder.binders(Ops.REDUCE) if rows in binder.ranges]
    lanes = builder.lanes(sums[0])
    is_short = axis.size % lanes == 0 and axis.size <= SHORT_ROW_VECTORS * lanes
    limit = MEMORY_BOUND_WORK if is_short else MEMORY_BOUND_WORK // 2
    is_cheap = all(builder.work(binder) < limit for binder in sums)
    return is_cheap and len(binders_over(builder.nest, axis)) <= MAX_SUMS_PER_ROW


def unrolled_rows(builder: RecipeBuilder, binder: UOp) -> int:
    """The rows that a reduction handles at once; 1 in row blocks."""
    if any(opt.op is OptOps.ROW_BLOCK for opt in builder.nest.recipe):
        return 1
    return prod([r.size for r in binder.ranges if r.kind is AxisKind.UPCAST])


def _has_rows_unrolled(builder: RecipeBuilder, binder: UOp) -> bool:
    """True if rows are blocked or already unrolled by another sum."""
    is_blocked = any(opt.op is OptOps.ROW_BLOCK for opt in builder.nest.recipe)
    return is_blocked or unrolled_rows(builder, binder) > 1


def _unroll_adjacent_rows(
    builder: RecipeBuilder, rows: UOp, axis: UOp, lanes: int, counts: tuple[int, ...]
) -> bool:
    """Unroll adjacent rows: they share loads, as in a matrix-vector product, or at least the
    horizontal add.
    """
    fitting = [n for n in counts if rows.size >= n > 1 and _allows_amount(builder, rows, n)]
    moves = [Opt(OptOps.UNROLL, axis.axis, lanes), Opt(OptOps.UPCAST, rows.axis, *fitting[:1])]
    return bool(fitting) and builder.try_moves(moves)


def _unroll_distant_rows(
    builder: RecipeBuilder, rows: UOp, axis: UOp, index: UOp, tile: tuple[int, int]
) -> bool:
    """rows 0, 1, 2, …  ->  rows 0, 16, 32, 48 together, then rows 1, 17, 33, 49, …"""
    streams, amount = tile
    if axis.size % amount:
        amount //= VECTORS_PER_STEP  # a remainder would be summed element by element
    row = abs(stride(index, rows) or axis.size) * index.dtype.itemsize
    parts = PARTS_PER_CORE * builder.target.cores
    step = 1
    while step * row < MIN_STREAM_DISTANCE and rows.size >= 2 * step * streams * parts:
        step *= 2
    if rows.size < step * streams * parts or not _allows_amount(builder, rows, step * streams):
        return False
    number = next_axis_number(builder.nest)
    tiling = [Opt(OptOps.TILE, rows.axis, step * streams), Opt(OptOps.TILE, number, step)]
    unroll = Opt(OptOps.UPCAST, number if step > 1 else rows.axis, streams)
    moves = [*(tiling if step > 1 else ()), unroll, Opt(OptOps.UNROLL, axis.axis, amount)]
    return builder.try_moves(moves)


def _split_row(builder: RecipeBuilder, axis: UOp, itemsize: int, tile: tuple[int, int]) -> bool:
    """a row  ->  its four quarters, one element of each at a time"""
    streams, amount = tile
    length = axis.size // streams // amount * amount
    if length * itemsize < MIN_STREAM_DISTANCE:
        return False
    number = next_axis_number(builder.nest)
    return builder.try_moves(
        [
            Opt(OptOps.TILE, axis.axis, length),
            Opt(OptOps.UNROLL, axis.axis, streams),
            Opt(OptOps.UNROLL, number, amount),
        ]
    )


def _allows_amount(builder: RecipeBuilder, axis: UOp, amount: int) -> bool:
    """True if the last steps may overlap or there is no remainder."""
    return not builder.nest.may_alias or axis.size % amount == 0
