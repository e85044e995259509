"""Recipes for sums that are collected in memory while rows of what is summed stream by.

Sums of columns, and products of a few rows with a large matrix: it is read once, in the order in
which it lies, and the sums of a stretch of its columns stay in a near cache.
"""

from __future__ import annotations

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.strides import stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.draft import Draft
from glassgrad.loops.opts import Opt, OptOps

ROWS = range(8, 3, -1)  # that are added before their sum goes to memory, the more the better
FEWEST_SUMS = 8  # that go there
FEW_COLUMNS = 64  # a stretch that is worth a loop of its own
MOST_RESULTS = 8  # rows of results that share what is read: as many registers
MOST_PASSES = 2  # over what is read, where there are more


def collect_in_memory(draft: Draft) -> bool:
    """Walk along the rows of what is summed by columns; False, and nothing done, if nothing is."""
    found = _find(draft)
    if found is None:
        return False
    reduce, results, columns = found
    (axis,) = reduce.bound
    count = 1 if results is None else _at_a_time(results)
    tile = _stretch(draft, columns, draft.target.l2_bytes // 4 // reduce.dtype.itemsize // count)
    rows = next(n for n in ROWS if axis.size % n == 0)
    moves = [Opt(OptOps.ACCUMULATE, axis.axis, rows)]
    if tile < columns.size:
        moves.insert(0, Opt(OptOps.TILE, columns.axis, tile))
    if results is not None:
        moves.insert(0, Opt(OptOps.UPCAST, results.axis, count))
    if not draft.attempt_together(moves):
        return False
    (added,) = draft.blocks(Ops.REDUCE)
    return draft.attempt(Opt(OptOps.UNROLL, added.bound[0].axis, rows))


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
    is_even = any(axis.size % n == 0 for n in ROWS)
    if not is_even or axis.size < FEWEST_SUMS * ROWS[0] or columns.size < FEW_COLUMNS:
        return None
    shared = [r for r in outer[:-1] if all(r not in index.ranges for index in wide)]
    if not shared:
        return reduce, None, columns
    is_large = axis.size * columns.size * reduce.dtype.itemsize > draft.target.l2_bytes
    is_plain = shared[0].kind is AxisKind.LOOP and shared[0].src[0].is_const
    is_skinny = len(outer) == 2 and shared[0].size <= MOST_PASSES * _at_a_time(shared[0])
    return (reduce, shared[0], columns) if is_large and is_plain and is_skinny else None


def _at_a_time(results: UOp) -> int:
    """How many of these rows share a pass; sums in memory may not be added to twice."""
    return max(n for n in range(1, MOST_RESULTS + 1) if results.size % n == 0)


def _stretch(draft: Draft, columns: UOp, room: int) -> int:
    """How many columns at a time: what fits, of equal lengths, and something for every core."""
    loops = [r for r in draft.nest.outer[:-1] if r.size > MOST_RESULTS]
    share = columns.size if loops else -(-columns.size // draft.target.cores)
    most = min(room, share)
    parts = [n for n in range(1, columns.size // FEW_COLUMNS + 1) if columns.size % n == 0]
    return next((columns.size // n for n in parts if columns.size // n <= most), columns.size)
