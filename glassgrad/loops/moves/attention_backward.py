"""SWEEP: blocks of rows go by, and what is summed over all rows is carried along.

Gradients of attention need a plane of weights both ways: along its rows, and summed over them. A
block of rows is computed once, used both ways, and forgotten.
"""

from __future__ import annotations

from typing import Any

from glassgrad.base.dtype import dtypes
from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.linear import scale
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp, make_range
from glassgrad.loops.analysis.mask_bounds import limits_of
from glassgrad.loops.analysis.online_softmax import along
from glassgrad.loops.moves.privatize_reductions import with_own_sums
from glassgrad.loops.moves.strip_mine import Blocks, Kept, widened
from glassgrad.loops.nest import blocks_of, next_number
from glassgrad.loops.opts import require


def sweep(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """s[i, j] = …; y[i] = f(s[i]); z[j] = g(sum over i of s[i, j])
    ->  for 64 i at a time: s[i, j] = …; y[i] = f(s[i]); t[j] += their sum; then z[j] = g(t[j])
    """
    are_blocks = 0 < amount < axis.size and axis.size % amount == 0 and not target.has_threads
    require(are_blocks, f"{axis.size} rows are no blocks of {amount}")
    require(not nest.rewrites, "something reads what is written")
    nest = with_own_sums(nest)
    loops, stages = along(nest, {axis})
    _require_sums(nest, loops, stages)
    number = next_number(nest)
    blocks, row = make_range(number, axis.size // amount), make_range(number + 1, axis.size)
    rows = _Rows(loops, stages, blocks, amount, target.line_bytes)
    body = _swept(nest, rows)
    seen = _swept(replace(nest, outer=(*nest.outer, row)), _Seen(rows, row))
    return replace(nest, body=body, limits=limits_of(seen, row, scale(blocks, amount), amount))


class _Rows(Blocks):
    """Rows of scratch have an odd number of lines: read across, they meet nowhere in a cache."""

    def __init__(
        self, loops: frozenset[UOp], stages: dict[UOp, int], blocks: UOp, amount: int, line: int
    ) -> None:
        super().__init__(loops, stages, (), blocks, amount)
        self.line = line

    def room(self, shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
        lines, rest = divmod(shape[-1] * itemsize, self.line)
        if len(shape) == 1 or rest or lines % 2:
            return shape
        return (*shape[:-1], shape[-1] + self.line // itemsize)


class _Seen(Blocks):
    """The same as a mask sees it: all rows of a block are one."""

    def __init__(self, rows: Blocks, row: UOp) -> None:
        super().__init__(rows.loops, rows.stages, rows.zeros, rows.blocks, rows.amount)
        self.row = row

    def place(self, r: UOp) -> UOp:
        return self.row


def _swept(nest: Nest, going_by: Blocks) -> UOp:
    """The body with blocks of rows, and sums over all rows where they have gone by."""
    done = going_by.of(nest)
    kept = Kept(replace(nest, body=done[nest.body]), going_by.blocks, going_by.blocks.axis + 2)
    behind: dict[UOp, UOp] = {}
    for node in blocks_of(nest.body):
        if node.op is Ops.REDUCE and not going_by.loops.isdisjoint(node.bound):
            total = kept.summed(node.arg, widened(done[node]))
            behind[done[node]] = total.cast(node.dtype)
    stores = sorted(nest.body.src, key=lambda store: not going_by.loops.isdisjoint(store.bound))
    return UOp(Ops.SINK, dtypes.void, tuple([done[s].substitute(behind) for s in stores]))


def _require_sums(nest: Nest, loops: frozenset[UOp], stages: dict[UOp, int]) -> None:
    """Are there sums over the rows of something in scratch, and no row needs any of them?

    A sum of deviations from the mean over all rows needs one as well: its terms are rows.
    """
    along_rows = [block for block in blocks_of(nest.body) if not loops.isdisjoint(block.bound)]
    sums = {block for block in along_rows if block.op is Ops.REDUCE}
    require(bool(sums and stages), "nothing is summed over rows that are in scratch")
    for block in along_rows:
        is_free = sums.isdisjoint([node for node in block.toposort() if node is not block])
        require(is_free, "rows need what is summed over all of them")
        if block in sums:
            is_sum = block.arg is Ops.ADD and len(block.bound) == 1 and block.dtype.kind == "float"
            require(is_sum, "only sums over nothing but rows are carried along")
            continue
        is_once = block.op is not Ops.SCAN and len(loops.intersection(block.bound)) == 1
        require(is_once, "something goes along the rows twice, or in order")
        is_placed = block.op is not Ops.STAGE or block in stages
        require(is_placed, "scratch is filled along the rows, but has no place for each")
