"""ATTENTION_BACKWARD: row blocks of a matrix in scratch are used along rows and summed over rows.

Gradients of attention read the weights both ways. Each row block is computed once, used for both,
and overwritten by the next; sums over all rows are carried in scratch.
"""

from __future__ import annotations

from typing import Any

from glassgrad.base.dtype import dtypes
from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.linear import scale
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp, make_range
from glassgrad.loops.analysis.mask_bounds import mask_bounds_of
from glassgrad.loops.analysis.online_softmax import loops_along
from glassgrad.loops.moves.privatize_reductions import privatize_reductions
from glassgrad.loops.moves.strip_mine import CarriedScratch, StripMine, with_wide_accumulator
from glassgrad.loops.nest import binders_of, next_axis_number
from glassgrad.loops.opts import require


def attention_backward(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """s[i, j] = …; y[i] = f(s[i]); z[j] = g(sum over i of s[i, j])
    ->  for blocks of 64 i: s[i, j] = …; y[i] = f(s[i]); t[j] += their sum; then z[j] = g(t[j])
    """
    divides = 0 < amount < axis.size and axis.size % amount == 0 and not target.has_threads
    require(divides, f"{amount} rows do not evenly divide {axis.size}, or the target has threads")
    require(not nest.may_alias, "the nest reads a buffer that it writes")
    nest = privatize_reductions(nest)
    loops, stages = loops_along(nest, {axis})
    _require_sums_over_rows(nest, loops, stages)
    number = next_axis_number(nest)
    blocks, row = make_range(number, axis.size // amount), make_range(number + 1, axis.size)
    rows = _PaddedRows(loops, stages, blocks, amount, target.line_bytes)
    body = _rewrite(nest, rows)
    masked = _rewrite(replace(nest, outer=(*nest.outer, row)), _MaskedRows(rows, row))
    return replace(
        nest, body=body, mask_bounds=mask_bounds_of(masked, row, scale(blocks, amount), amount)
    )


class _PaddedRows(StripMine):
    """Pads scratch rows to an odd number of cache lines, so that column reads spread over all cache
    sets.
    """

    def __init__(
        self, loops: frozenset[UOp], stages: dict[UOp, int], blocks: UOp, amount: int, line: int
    ) -> None:
        super().__init__(loops, stages, (), blocks, amount)
        self.line = line

    def scratch_shape(self, shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
        lines, rest = divmod(shape[-1] * itemsize, self.line)
        if len(shape) == 1 or rest or lines % 2:
            return shape
        return (*shape[:-1], shape[-1] + self.line // itemsize)


class _MaskedRows(StripMine):
    """The same rewrite for mask analysis: every row of a block becomes the one range `row`."""

    def __init__(self, rows: StripMine, row: UOp) -> None:
        super().__init__(rows.loops, rows.stages, rows.zero_filled, rows.block_range, rows.amount)
        self.row = row

    def position(self, r: UOp) -> UOp:
        return self.row


def _rewrite(nest: Nest, mined: StripMine) -> UOp:
    """The body strip-mined into row blocks, with sums over all rows read after the last block."""
    done = mined.apply(nest)
    carried = CarriedScratch(
        replace(nest, body=done[nest.body]), mined.block_range, mined.block_range.axis + 2
    )
    totals: dict[UOp, UOp] = {}
    for node in binders_of(nest.body):
        if node.op is Ops.REDUCE and not mined.loops.isdisjoint(node.bound):
            total = carried.accumulate(node.arg, with_wide_accumulator(done[node]))
            totals[done[node]] = total.cast(node.dtype)
    stores = sorted(nest.body.src, key=lambda store: not mined.loops.isdisjoint(store.bound))
    return UOp(Ops.SINK, dtypes.void, tuple([done[s].substitute(totals) for s in stores]))


def _require_sums_over_rows(nest: Nest, loops: frozenset[UOp], stages: dict[UOp, int]) -> None:
    """Require sums over the rows of some scratch, none of which any row depends on.

    A sum of deviations from the mean over all rows fails: its terms depend on another sum.
    """
    over_rows = [binder for binder in binders_of(nest.body) if not loops.isdisjoint(binder.bound)]
    sums = {binder for binder in over_rows if binder.op is Ops.REDUCE}
    require(bool(sums and stages), "no sum runs over the rows of a matrix in scratch")
    for binder in over_rows:
        is_independent = sums.isdisjoint([node for node in binder.toposort() if node is not binder])
        require(is_independent, "a row depends on a sum over all rows")
        if binder in sums:
            is_sum = (
                binder.arg is Ops.ADD and len(binder.bound) == 1 and binder.dtype.kind == "float"
            )
            require(is_sum, "only float sums over the rows alone can be carried")
            continue
        has_one_loop = binder.op is not Ops.SCAN and len(loops.intersection(binder.bound)) == 1
        require(has_one_loop, "a statement has two loops over the rows, or a scan")
        is_indexed = binder.op is not Ops.STAGE or binder in stages
        require(is_indexed, "scratch written in a loop over rows is not indexed by the row")
