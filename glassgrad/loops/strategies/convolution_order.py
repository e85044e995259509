"""Coalesce the rows of a convolution window with its channels into one loop of constant stride.

If a copy of the image stores the rows of all channels next to each other, the step from the last
channel of a row to the first of the next equals the step between channels. One loop then runs over
both, and only the window's columns are unrolled.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from glassgrad.base.fast_dataclasses import frozen
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.strides import stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.shared.recipe_builder import RecipeBuilder

MAX_TRANSPOSED_REUSE = 128  # reads of a weight up to which transposing it in registers pays


@frozen
class WindowAxes:
    """The reduction axes of a convolution, and an order of image indices with channels inside of
    rows.
    """

    row: UOp
    channel: UOp
    column: UOp
    order: tuple[int, ...]  # permutation of the image indices: channels after rows


def find_window_axes(reduce: UOp, image: UOp) -> WindowAxes | None:
    """The role of each reduction axis, if they are one channel, one row and one column axis."""
    steps = set(reduce.bound)
    reduced = [(n, i.ranges & steps) for n, i in enumerate(image.indices) if i.ranges & steps]
    if len(steps) != 3 or [len(ranges) for _, ranges in reduced] != [1, 1, 1]:
        return None
    windows = [n for n, _ in reduced if image.indices[n].ranges - steps]
    channel_indices = [n for n, _ in reduced if n not in windows]
    if len(windows) != 2 or windows[1] != len(image.indices) - 1:
        return None
    order = [n for n in range(len(image.indices)) if n not in channel_indices]
    order[-1:-1] = channel_indices
    axes = {n: axis for n, (axis,) in reduced}
    return WindowAxes(axes[windows[0]], axes[channel_indices[0]], axes[windows[1]], tuple(order))


def iterate_rows_outside(
    builder: RecipeBuilder, steps: WindowAxes, image: UOp, number: int
) -> bool:
    """for c: for y: x[c, i + y]  ->  s[y, c] = x[c, y]; for y: for c: s[i + y, c]"""
    (reduce,) = builder.binders(Ops.REDUCE)
    wanted = [steps.row, steps.channel, steps.column]
    copy = Opt(OptOps.CACHE_READ, number, (image.src[0].arg.slot, steps.order))
    return builder.try_moves([*swaps(reduce.bound, wanted), copy])


def coalesce_rows(builder: RecipeBuilder, steps: WindowAxes, reduce: UOp, weights: UOp) -> None:
    """for y: for c  ->  one loop; weights are packed in that order, but read in memory order."""
    builder.try_move(Opt(OptOps.COALESCE, steps.row.axis, steps.channel.axis))
    for binder in builder.binders(Ops.STAGE):
        for index in builder.loads(binder):
            if index.src[0] is weights.src[0]:
                # inside of a panel
                loops = [r for r in binder.bound if r.kind is AxisKind.LOOP][-3:]
                wanted = sorted(loops, key=lambda r: -abs(stride(index, r) or 0))
                builder.try_moves(swaps(loops, wanted))
                if prod(r.size for r in reduce.ranges - weights.ranges) <= MAX_TRANSPOSED_REUSE:
                    _pack_transposed(builder, wanted[-2:], builder.lanes(binder))


def swaps(current: Sequence[UOp], wanted: Sequence[UOp]) -> list[Opt]:
    """The SWAP moves that permute loops into another order."""
    moves: list[Opt] = []
    order = list(current)
    for position, axis in enumerate(wanted):
        other = order[position]
        if other is not axis:
            moves.append(Opt(OptOps.SWAP, other.axis, axis.axis))
            order[order.index(axis)], order[position] = other, axis
    return moves


def _pack_transposed(builder: RecipeBuilder, window: list[UOp], lanes: int) -> None:
    """Pack all steps of a window at once: lower/memory/transpose.py loads most of them along
    memory.
    """
    steps = prod(r.size for r in window)
    if len(window) == 2 and lanes < steps < 2 * lanes:
        rows, columns = [r.axis for r in window]
        builder.try_moves([Opt(OptOps.COALESCE, rows, columns), Opt(OptOps.UPCAST, rows, steps)])
