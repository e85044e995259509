"""Recipes for sums that are collected in memory while rows of what is summed stream by.

Sums of columns, and products of a few rows with a large matrix: it is read once, in the order in
which it lies, and the sums of a stretch of its columns stay in a near cache.
"""

from __future__ import annotations

from glassgrad.base.fast_dataclasses import frozen
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.strides import stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.cores import is_even
from glassgrad.loops.strategies.recipe_builder import Draft
from glassgrad.loops.strategies.register_tile import FEW_REGISTERS

ROWS = range(8, 3, -1)  # that are added before their sum goes to memory, the more the better
ROWS_IN_LOOP = 16  # the same, in a loop
VECTORS = 2  # of columns there: rows lie anyhow in memory, and vectors side by side share lines
FEWEST_SUMS = 8  # that go there
FEW_COLUMNS = 64  # a stretch that is worth a loop of its own
MOST_RESULTS = 8  # rows of results that share what is read: as many registers
MOST_PASSES = 2  # over what is read, where there are more
MOST_ROWS = 1 << 14  # of a float sum: each addition to memory rounds; registers sum in blocks


@frozen
class Found:
    """A sum over one axis, the results that share what it reads, and the columns it runs along."""

    reduce: UOp
    results: UOp | None
    columns: UOp

    @property
    def together(self) -> int:
        """How many results share a pass."""
        return 1 if self.results is None else _at_a_time(self.results)


def collect_in_memory(draft: Draft) -> set[int] | None:
    """Walk along the rows of what is summed by columns: the axes of sums that stay loops. None, and
    nothing done, if nothing is summed so.
    """
    found = _find(draft)
    if found is None:
        return None
    in_loop = _collect_in_loop(draft, found)
    return _collect_written_out(draft, found) if in_loop is None else in_loop


def _collect_written_out(draft: Draft, found: Found) -> set[int] | None:
    """A few rows at a time, whose factors stay in registers."""
    (axis,) = found.reduce.bound
    tile = _stretch(draft, found, draft.target.l2_bytes // 4, 1)
    rows = next(n for n in ROWS if axis.size % n == 0)
    if not _accumulate(draft, found, tile, rows):
        return None
    (added,) = draft.blocks(Ops.REDUCE)
    draft.attempt(Opt(OptOps.UNROLL, added.bound[0].axis, rows))
    return set()


def _collect_in_loop(draft: Draft, found: Found) -> set[int] | None:
    """More rows at a time, where factors of few would already be too many for the registers: with
    many registers there are sums enough without, and products take factors from memory.
    """
    (axis,), target = found.reduce.bound, draft.target
    width = VECTORS * draft.lanes(found.reduce)
    tile = _stretch(draft, found, target.l1_bytes, width)
    is_small = found.together * ROWS[0] <= target.registers or target.registers <= FEW_REGISTERS
    if is_small or axis.size % ROWS_IN_LOOP or tile % width:
        return None
    if not _accumulate(draft, found, tile, ROWS_IN_LOOP):
        return None
    (added,) = draft.blocks(Ops.REDUCE)
    (store,) = [block for block in draft.blocks(Ops.STORE) if block.value is added]
    draft.attempt(Opt(OptOps.UPCAST, store.bound[-1].axis, width))
    return {added.bound[0].axis}


def _accumulate(draft: Draft, found: Found, tile: int, rows: int) -> bool:
    """So many rows at a time, along so many columns."""
    moves = [Opt(OptOps.ACCUMULATE, found.reduce.bound[0].axis, rows)]
    if tile < found.columns.size:
        moves.insert(0, Opt(OptOps.TILE, found.columns.axis, tile))
    if found.results is not None:
        moves.insert(0, Opt(OptOps.UPCAST, found.results.axis, found.together))
    return draft.attempt_together(moves)


def _find(draft: Draft) -> Found | None:
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
    if axis.size > MOST_ROWS and reduce.dtype.kind == "float":
        return None
    shared = [r for r in outer[:-1] if all(r not in index.ranges for index in wide)]
    if not shared:
        return Found(reduce, None, columns)
    is_large = axis.size * columns.size * reduce.dtype.itemsize > draft.target.l2_bytes
    is_plain = shared[0].kind is AxisKind.LOOP and shared[0].src[0].is_const
    is_skinny = len(outer) == 2 and shared[0].size <= MOST_PASSES * _at_a_time(shared[0])
    return Found(reduce, shared[0], columns) if is_large and is_plain and is_skinny else None


def _at_a_time(results: UOp) -> int:
    """How many of these rows share a pass; sums in memory may not be added to twice."""
    return max(n for n in range(1, MOST_RESULTS + 1) if results.size % n == 0)


def _stretch(draft: Draft, found: Found, near: int, width: int) -> int:
    """How many columns at a time: as many as have their sums near, of equal lengths that are
    multiples of a width, and something for every core.
    """
    columns, cores = found.columns.size, draft.target.cores
    loops = [r for r in draft.nest.outer[:-1] if r.size > MOST_RESULTS]
    room = near // found.reduce.dtype.itemsize // found.together
    most = min(room, columns if loops else -(-columns // cores))
    parts = [n for n in range(1, columns // FEW_COLUMNS + 1) if columns % (n * width) == 0]
    fitting = [n for n in parts if columns // n <= most]
    even = [n for n in fitting if loops or is_even(n, cores)]
    return columns // next(iter(even or fitting), 1)
