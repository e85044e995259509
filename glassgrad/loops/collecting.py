"""Recipes for sums that are collected in memory while rows of what is summed stream by.

Sums of columns, and products of a few rows with a large matrix: it is read once, in the order in
which it lies, and the sums of a stretch of its columns stay in the nearest cache.
"""

from __future__ import annotations

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.strides import stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.draft import Draft
from glassgrad.loops.opts import Opt, OptOps

ROWS = 8  # rows that are added before their sum goes to memory
FEW_COLUMNS = 64  # a stretch that is worth a loop of its own
MOST_RESULTS = 4  # rows of results that share what is read


def collect_in_memory(draft: Draft) -> bool:
    """Walk along the rows of what is summed by columns; False, and nothing done, if nothing is."""
    found = _find(draft)
    if found is None:
        return False
    reduce, results, columns = found
    (axis,) = reduce.bound
    count = 1 if results is None else results.size
    tile = _stretch(draft, columns, draft.target.l1_bytes // 2 // reduce.dtype.itemsize // count)
    if results is not None and not draft.attempt(Opt(OptOps.UPCAST, results.axis, count)):
        return False
    if tile < columns.size:
        draft.attempt(Opt(OptOps.TILE, columns.axis, tile))
    if draft.attempt(Opt(OptOps.ACCUMULATE, axis.axis, ROWS)):
        (rows,) = draft.blocks(Ops.REDUCE)
        draft.attempt(Opt(OptOps.UNROLL, rows.bound[0].axis, ROWS))
    return True


def _find(draft: Draft) -> tuple[UOp, UOp | None, UOp] | None:
    """A sum over one axis, the results that share what it reads, and the columns it runs along."""
    reduces, outer = draft.blocks(Ops.REDUCE), draft.nest.outer
    if len(reduces) != 1 or len(reduces[0].bound) != 1 or not outer:
        return None
    (reduce,), columns = reduces, outer[-1]
    (axis,) = reduce.bound
    wide = [index for index in draft.loads(reduce) if columns in index.ranges]
    if not wide or any(stride(index, columns) != 1 or stride(index, axis) == 1 for index in wide):
        return None
    if axis.size % ROWS or axis.size < 8 * ROWS or columns.size < FEW_COLUMNS:
        return None
    shared = [r for r in outer[:-1] if all(r not in index.ranges for index in wide)]
    if not shared:
        return reduce, None, columns
    is_large = axis.size * columns.size * reduce.dtype.itemsize > draft.target.l2_bytes
    is_skinny = len(outer) == 2 and shared[0].size <= MOST_RESULTS
    is_plain = shared[0].kind is AxisKind.LOOP and shared[0].src[0].is_const
    return (reduce, shared[0], columns) if is_large and is_skinny and is_plain else None


def _stretch(draft: Draft, columns: UOp, room: int) -> int:
    """How many columns at a time: what fits, of equal lengths, and something for every core."""
    loops = [r for r in draft.nest.outer[:-1] if r.size > MOST_RESULTS]
    share = columns.size if loops else -(-columns.size // draft.target.cores)
    most = min(room, share)
    parts = [n for n in range(1, columns.size // FEW_COLUMNS + 1) if columns.size % n == 0]
    return next((columns.size // n for n in parts if columns.size // n <= most), columns.size)
