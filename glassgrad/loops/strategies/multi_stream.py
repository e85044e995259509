"""Runs of memory that a sum reads side by side: a core fetches several ahead faster than one.

What fetches ahead follows each run only so far: one run comes at some 18 GB/s to a core that reads
four at 30. Runs that lie in one page are one run to it, so they should lie apart.
"""

from __future__ import annotations

from math import prod

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.strides import stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.nest import blocks, next_number
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.recipe_builder import LIGHT, Draft

RUNS = 4  # that are read from memory at a time
APART = 1 << 16  # bytes from one to the next
LINE = 2  # vectors of a run at a time: a whole line of the cache
PARTS = 4  # blocks of rows for each core, so that none waits long for another
NEAR_ROWS = (8, 4)  # rows in a cache that share what is loaded for all of them
SHORT_ROW = 16  # vectors, to add up the lanes of which takes as long as to read them
MOST_SUMS = 2  # of a row, for which several rows go side by side


def read_side_by_side(draft: Draft, block: UOp, axis: UOp) -> bool:
    """Shape a sum along memory as several runs; False, and nothing done, if one is as good."""
    loads = [index for index in draft.loads(block) if axis in index.ranges]
    rows = _rows_of(draft, block, loads)
    if _is_taken(draft, block):
        return False
    wide = [index for index in loads if rows is None or rows in index.ranges]
    size = axis.size * (1 if rows is None else rows.size) * wide[0].dtype.itemsize
    runs = RUNS // len(wide)
    is_lone = draft.blocks(Ops.REDUCE) == [block] and not draft.blocks(Ops.STAGE)
    if is_lone and size > draft.target.l2_bytes and runs > 1 and draft.is_light(block):
        amount = LINE * draft.lanes(block)
        if rows is not None and _far_rows(draft, rows, axis, wide[0], (runs, amount)):
            return True
        if _parts_of_row(draft, axis, wide[0].dtype.itemsize, (runs, amount)):
            return True
    if rows is None:
        return False
    if any(rows not in index.ranges for index in loads):
        return _near_rows(draft, rows, axis, draft.lanes(block), NEAR_ROWS)
    if _are_written(draft, rows) or not _is_short(draft, rows, axis):
        return False
    is_shared = rows.size >= RUNS * draft.target.cores
    is_near = size <= draft.target.l3_bytes // 2  # from memory, neighbours are no runs of their own
    return is_shared and is_near and _near_rows(draft, rows, axis, draft.lanes(block), (RUNS,))


def _rows_of(draft: Draft, block: UOp, loads: list[UOp]) -> UOp | None:
    """The innermost loop whose steps read other rows; first of all one that shares a load."""
    found: UOp | None = None
    inside = [r for stage in draft.blocks(Ops.STAGE) for r in stage.bound if r in block.ranges]
    for rows in reversed((*draft.nest.outer, *inside)):
        has_rows = [rows in index.ranges for index in loads]
        if rows.kind is AxisKind.LOOP and any(has_rows):
            if not all(has_rows):
                return rows
            found = found or rows
    return found


def _are_written(draft: Draft, rows: UOp) -> bool:
    """Is more than one value of each row kept? Several rows would be many runs to write."""
    for block in draft.blocks(Ops.STORE) + draft.blocks(Ops.STAGE):
        bound = block.bound
        own = bound[bound.index(rows) + 1 :] if rows in bound else bound
        if own and (rows in bound or rows in block.ranges):
            return True
    return False


def _is_short(draft: Draft, rows: UOp, axis: UOp) -> bool:
    """May all that is computed of a row be written out for several? If a row is long that pays for
    plain sums only: what computes more is busy with one row.
    """
    sums = [block for block in draft.blocks(Ops.REDUCE) if rows in block.ranges]
    lanes = draft.lanes(sums[0])
    is_even = axis.size % lanes == 0 and axis.size <= SHORT_ROW * lanes
    most = LIGHT if is_even else LIGHT // 2
    is_little = all(draft.work(block) < most for block in sums)
    return is_little and len(blocks(draft.nest, axis)) <= MOST_SUMS


def rows_at_once(draft: Draft, block: UOp) -> int:
    """How many rows a sum takes side by side; 1 where all rows go in blocks."""
    if any(opt.op is OptOps.BLOCK for opt in draft.nest.recipe):
        return 1
    return prod([r.size for r in block.ranges if r.kind is AxisKind.UPCAST])


def _is_taken(draft: Draft, block: UOp) -> bool:
    """Do rows go in blocks already, or was another sum of the same rows first?"""
    is_blocked = any(opt.op is OptOps.BLOCK for opt in draft.nest.recipe)
    return is_blocked or rows_at_once(draft, block) > 1


def _near_rows(draft: Draft, rows: UOp, axis: UOp, lanes: int, counts: tuple[int, ...]) -> bool:
    """Neighbours share what is loaded for all of them, as in a matrix times a vector, or at least
    the adding up of lanes.
    """
    fitting = [n for n in counts if rows.size >= n > 1 and _may_take(draft, rows, n)]
    moves = [Opt(OptOps.UNROLL, axis.axis, lanes), Opt(OptOps.UPCAST, rows.axis, *fitting[:1])]
    return bool(fitting) and draft.attempt_together(moves)


def _far_rows(draft: Draft, rows: UOp, axis: UOp, index: UOp, tile: tuple[int, int]) -> bool:
    """rows 0, 1, 2, …  ->  rows 0, 16, 32, 48 together, then rows 1, 17, 33, 49, …"""
    runs, amount = tile
    if axis.size % amount:
        amount //= LINE  # what is left over is summed one by one
    row = abs(stride(index, rows) or axis.size) * index.dtype.itemsize
    parts = PARTS * draft.target.cores
    step = 1
    while step * row < APART and rows.size >= 2 * step * runs * parts:
        step *= 2
    if rows.size < step * runs * parts or not _may_take(draft, rows, step * runs):
        return False
    number = next_number(draft.nest)
    apart = [Opt(OptOps.TILE, rows.axis, step * runs), Opt(OptOps.TILE, number, step)]
    beside = Opt(OptOps.UPCAST, number if step > 1 else rows.axis, runs)
    moves = [*(apart if step > 1 else ()), beside, Opt(OptOps.UNROLL, axis.axis, amount)]
    return draft.attempt_together(moves)


def _parts_of_row(draft: Draft, axis: UOp, itemsize: int, tile: tuple[int, int]) -> bool:
    """a row  ->  its four quarters, one element of each at a time"""
    runs, amount = tile
    length = axis.size // runs // amount * amount
    if length * itemsize < APART:
        return False
    number = next_number(draft.nest)
    return draft.attempt_together(
        [
            Opt(OptOps.TILE, axis.axis, length),
            Opt(OptOps.UNROLL, axis.axis, runs),
            Opt(OptOps.UNROLL, number, amount),
        ]
    )


def _may_take(draft: Draft, axis: UOp, amount: int) -> bool:
    """Steps at a time: the last ones may overlap, unless elements would be stored twice."""
    return not draft.nest.rewrites or axis.size % amount == 0
