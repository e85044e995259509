"""Rows of a window, and channels -> one loop with one step.

A copy of an image may have the rows of all channels one behind the other. From the last channel of
a row it is then as far to the first of the next row as from channel to channel: one loop goes over
both, and only the columns of the window are written out.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from glassgrad.base.fast_dataclasses import frozen
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.strides import stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.recipe_builder import Draft

FEW_READS = 128  # of a weight, for which it pays to turn weights around in registers


@frozen
class Steps:
    """The axes of a sum over windows, each with its place among the indices of the image."""

    row: UOp
    channel: UOp
    column: UOp
    order: tuple[int, ...]  # of the indices: channels behind rows


def find_steps(reduce: UOp, image: UOp) -> Steps | None:
    """What each axis of a sum is, if it is a sum over channels, rows and columns."""
    steps = set(reduce.bound)
    within = [(n, i.ranges & steps) for n, i in enumerate(image.indices) if i.ranges & steps]
    if len(steps) != 3 or [len(found) for _, found in within] != [1, 1, 1]:
        return None
    windows = [n for n, _ in within if image.indices[n].ranges - steps]
    apart = [n for n, _ in within if n not in windows]
    if len(windows) != 2 or windows[1] != len(image.indices) - 1:
        return None
    order = [n for n in range(len(image.indices)) if n not in apart]
    order[-1:-1] = apart
    axes = {n: axis for n, (axis,) in within}
    return Steps(axes[windows[0]], axes[apart[0]], axes[windows[1]], tuple(order))


def walk_rows(draft: Draft, steps: Steps, image: UOp, number: int) -> bool:
    """for c: for y: x[c, i + y]  ->  s[y, c] = x[c, y]; for y: for c: s[i + y, c]"""
    (reduce,) = draft.blocks(Ops.REDUCE)
    wanted = [steps.row, steps.channel, steps.column]
    copy = Opt(OptOps.WINDOW, number, (image.src[0].arg.slot, steps.order))
    return draft.attempt_together([*swaps(reduce.bound, wanted), copy])


def join_rows(draft: Draft, steps: Steps, reduce: UOp, weights: UOp) -> None:
    """for y: for c  ->  one loop; weights are packed in that order, but read as they lie."""
    draft.attempt(Opt(OptOps.JOIN, steps.row.axis, steps.channel.axis))
    for block in draft.blocks(Ops.STAGE):
        for index in draft.loads(block):
            if index.src[0] is weights.src[0]:
                loops = [r for r in block.bound if r.kind is AxisKind.LOOP][-3:]  # in a panel
                wanted = sorted(loops, key=lambda r: -abs(stride(index, r) or 0))
                draft.attempt_together(swaps(loops, wanted))
                if prod(r.size for r in reduce.ranges - weights.ranges) <= FEW_READS:
                    _turn_around(draft, wanted[-2:], draft.lanes(block))


def swaps(now: Sequence[UOp], wanted: Sequence[UOp]) -> list[Opt]:
    """Moves that bring loops into another order."""
    made: list[Opt] = []
    order = list(now)
    for place, axis in enumerate(wanted):
        other = order[place]
        if other is not axis:
            made.append(Opt(OptOps.SWAP, other.axis, axis.axis))
            order[order.index(axis)], order[place] = other, axis
    return made


def _turn_around(draft: Draft, window: list[UOp], lanes: int) -> None:
    """All steps of a window at once: lower/memory/transpose.py loads most of them along memory."""
    steps = prod(r.size for r in window)
    if len(window) == 2 and lanes < steps < 2 * lanes:
        rows, columns = [r.axis for r in window]
        draft.attempt_together([Opt(OptOps.JOIN, rows, columns), Opt(OptOps.UPCAST, rows, steps)])
