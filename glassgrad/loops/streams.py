"""Runs of memory that a sum reads side by side: a core fetches several ahead faster than one.

What fetches ahead follows each run only so far: one run comes at some 18 GB/s to a core that reads
four at 30. Runs that lie in one page are one run to it, so they should lie apart.
"""

from __future__ import annotations

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.strides import stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.draft import Draft
from glassgrad.loops.nest import next_number
from glassgrad.loops.opts import Opt, OptOps

RUNS = 4  # that are read from memory at a time
APART = 1 << 16  # bytes from one to the next
LINE = 2  # vectors of a run at a time: a whole line of the cache
PARTS = 4  # blocks of rows for each core, so that none waits long for another
NEAR_ROWS = (8, 4)  # rows in a cache that share what is loaded for all of them


def read_side_by_side(draft: Draft, block: UOp, axis: UOp) -> bool:
    """Shape a sum along memory as several runs; False, and nothing done, if one is as good."""
    loads = [index for index in draft.loads(block) if axis in index.ranges]
    rows = _rows_of(draft, loads)
    is_shared = rows is not None and any(rows not in index.ranges for index in loads)
    is_lone = draft.blocks(Ops.REDUCE) == [block] and not draft.blocks(Ops.STAGE)
    if _is_taken(draft, block) or not (is_shared or is_lone):
        return False
    wide = [index for index in loads if rows is None or rows in index.ranges]
    size = axis.size * (1 if rows is None else rows.size) * wide[0].dtype.itemsize
    runs = RUNS // len(wide)
    if is_lone and size > draft.target.l2_bytes and runs > 1 and draft.is_light(block):
        amount = LINE * draft.lanes(block)
        if rows is not None and _far_rows(draft, rows, axis, wide[0], (runs, amount)):
            return True
        if _parts_of_row(draft, axis, wide[0].dtype.itemsize, (runs, amount)):
            return True
    return is_shared and rows is not None and _near_rows(draft, rows, axis, draft.lanes(block))


def _rows_of(draft: Draft, loads: list[UOp]) -> UOp | None:
    """The innermost loop whose steps read other rows; first of all one that shares a load."""
    found: UOp | None = None
    for rows in reversed(draft.nest.outer):
        has_rows = [rows in index.ranges for index in loads]
        if rows.kind is AxisKind.LOOP and any(has_rows):
            if not all(has_rows):
                return rows
            found = found or rows
    return found


def _is_taken(draft: Draft, block: UOp) -> bool:
    """Do rows go in blocks already, or was another sum of the same rows first?"""
    is_blocked = any(opt.op is OptOps.BLOCK for opt in draft.nest.recipe)
    return is_blocked or any(r.kind is AxisKind.UPCAST for r in block.ranges)


def _near_rows(draft: Draft, rows: UOp, axis: UOp, lanes: int) -> bool:
    """Neighbours share what is loaded for all of them, as in a matrix times a vector."""
    fitting = [n for n in NEAR_ROWS if rows.size >= n and _may_take(draft, rows, n)]
    moves = [Opt(OptOps.UNROLL, axis.axis, lanes), Opt(OptOps.UPCAST, rows.axis, *fitting[:1])]
    return bool(fitting) and draft.attempt_together(moves)


def _far_rows(draft: Draft, rows: UOp, axis: UOp, index: UOp, tile: tuple[int, int]) -> bool:
    """rows 0, 1, 2, …  ->  rows 0, 16, 32, 48 together, then rows 1, 17, 33, 49, …"""
    runs, amount = tile
    if axis.size % amount:
        amount //= LINE  # what is left over is summed one by one
    row = abs(stride(index, rows) or axis.size) * index.dtype.itemsize
    blocks = PARTS * draft.target.cores
    step = 1
    while step * row < APART and rows.size >= 2 * step * runs * blocks:
        step *= 2
    if rows.size < step * runs * blocks or not _may_take(draft, rows, step * runs):
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
