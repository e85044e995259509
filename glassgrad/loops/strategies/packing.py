"""Operands that are copied into scratch -> vectors: along memory, or turned around in registers.

A panel has the lanes of an axis side by side. Where they lie apart in memory, and steps of the sum
lie in a row, several steps are packed at a time: lower/memory/transpose.py loads them along memory.
"""

from __future__ import annotations

from itertools import pairwise
from math import gcd, prod

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.strides import stride, written_stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.moves.lanes import NEAR
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.recipe_builder import Draft

MOST_READS = 512  # of an element that is packed by turning around
MOST_CROWDED = 4096  # the same, where reading it another way would take longer
MOST_STEPS = 4  # of a dot product that go into a lane
MOST_PANELS = 16  # that are filled at once
MOST_VECTORS = 8  # of a row that is copied without a loop


def copy_in_vectors(draft: Draft) -> None:
    """Scratch is filled along memory, a vector at a time; a row of few vectors has no loop, so that
    it is known beforehand which of its elements lie beside the image.
    """
    for number in range(len(draft.blocks(Ops.STAGE))):
        block = draft.blocks(Ops.STAGE)[number]
        for axis in block.bound:
            if axis.kind is AxisKind.LOOP and written_stride(block, axis) == 1:
                amount = min(draft.lanes(block), 1 << (axis.size.bit_length() - 1))
                draft.attempt(Opt(OptOps.UPCAST, axis.axis, amount))
                count = -(-axis.size // amount)
                if 1 < count <= MOST_VECTORS:
                    draft.attempt(Opt(OptOps.UPCAST, axis.axis, count))
                break


def pack_across(draft: Draft) -> None:
    """Every STAGE that jumps along its lanes takes as many steps along memory as it has lanes.

    What is read very often is not worth it: exchanges take long to compile.
    """
    for number in range(len(draft.blocks(Ops.STAGE))):
        block = draft.blocks(Ops.STAGE)[number]
        most = MOST_CROWDED if _is_crowded(draft, block) else MOST_READS
        if _times_read(draft, block) > most:
            continue
        while (pair := _in_a_row(draft, number)) is not None:
            draft.attempt(Opt(OptOps.JOIN, *pair))
        block = draft.blocks(Ops.STAGE)[number]
        across, lanes = _across(draft, block), draft.lanes(block)
        if across is not None and across.size >= lanes:
            draft.attempt(Opt(OptOps.UPCAST, across.axis, lanes))


def pack_side_by_side(draft: Draft) -> None:
    """Panels that lie side by side in memory are filled together, so that longer runs are read; and
    steps that share a line of a panel, as panels may lie where lines have few places in a cache.
    """
    found = [(_next_panel(draft, b), _next_steps(draft, b)) for b in draft.blocks(Ops.STAGE)]
    for panels, steps in found:
        if panels is None:
            continue
        most = MOST_PANELS
        if steps is not None and draft.attempt(steps):
            most //= steps.arg
        counts = [n for n in range(2, most + 1) if panels.size % n == 0]
        if counts:
            draft.attempt(Opt(OptOps.UPCAST, panels.axis, counts[-1]))


def _next_steps(draft: Draft, block: UOp) -> Opt | None:
    """Steps of the loop that goes on in scratch where the lanes of a STAGE end: as many at once as
    share a line.
    """
    width = prod(r.size for r in block.bound if r.kind.is_unrolled)
    most = draft.target.line_bytes // (width * block.dtype.itemsize)
    for r in block.bound:
        if r.kind is AxisKind.LOOP and written_stride(block, r) == width:
            amounts = [n for n in range(2, most + 1) if r.size % n == 0]
            return Opt(OptOps.UPCAST, r.axis, amounts[-1]) if amounts else None
    return None


def _next_panel(draft: Draft, block: UOp) -> UOp | None:
    """The loop that goes on in memory where the lanes of a STAGE end."""
    index = _read(draft, block)
    lanes = [r for r in block.bound if r.kind.is_unrolled]
    if index is None or not lanes or not all(stride(index, r) for r in lanes):
        return None
    width = prod(r.size for r in lanes)
    loops = [r for r in block.bound if r.kind is AxisKind.LOOP]
    return next((r for r in loops if stride(index, r) == width), None)


def pack_in_turn(draft: Draft) -> None:
    """Steps of a dot product lie side by side: what is read along memory is written in turn."""
    for block in draft.blocks(Ops.STAGE):
        steps = [r for r in block.bound if r.kind is AxisKind.UPCAST]
        steps = [r for r in steps if written_stride(block, r) == 1 and r.size <= MOST_STEPS]
        for index in draft.loads(block) if steps else ():
            for beside in block.bound:
                is_next = written_stride(block, beside) == steps[0].size
                if is_next and stride(index, beside) == 1:
                    amount = min(draft.lanes(block), beside.size & -beside.size)
                    draft.attempt(Opt(OptOps.LANES, beside.axis, amount))


def _is_crowded(draft: Draft, block: UOp) -> bool:
    """Do lanes lie so far apart that their lines have too few places in the nearest cache, and are
    gone before the next step needs them?
    """
    index, target = _read(draft, block), draft.target
    lanes = [r for r in block.bound if r.kind.is_unrolled]
    if index is None or not lanes:
        return False
    nearest = min(abs(stride(index, r) or 0) for r in lanes)
    apart = nearest * index.dtype.itemsize
    way = target.l1_bytes // target.l1_ways
    places = way // gcd(apart, way) * target.l1_ways
    return apart >= target.line_bytes and prod(r.size for r in lanes) > places


def _times_read(draft: Draft, block: UOp) -> float:
    """How many products an element that is copied goes into."""
    products = max(_steps(reduce) for reduce in draft.blocks(Ops.REDUCE))
    return products / _steps(block)


def _steps(block: UOp) -> int:
    return prod(r.size for r in {*block.ranges, *block.bound})


def _across(draft: Draft, block: UOp) -> UOp | None:
    """The loop that reads along memory, if what is written side by side is read from afar."""
    index = _read(draft, block)
    if index is None or not _jumps(block, index):
        return None
    loops = [r for r in block.bound if r.kind is AxisKind.LOOP]
    return next((r for r in loops if stride(index, r) == 1), None)


def _read(draft: Draft, block: UOp) -> UOp | None:
    """The one place that is copied, if nothing else is read."""
    loads = draft.loads(block)
    return loads[0] if len(loads) == 1 and loads[0].gate is None else None


def _jumps(block: UOp, index: UOp) -> bool:
    beside = [r for r in block.bound if written_stride(block, r) == 1]
    return any(r.kind.is_unrolled and stride(index, r) not in NEAR for r in beside)


def _in_a_row(draft: Draft, number: int) -> tuple[int, int] | None:
    """Two loops of a STAGE that read and write as one longer loop would."""
    block = draft.blocks(Ops.STAGE)[number]
    index = _read(draft, block)
    if index is None or not _jumps(block, index):
        return None
    for first, second in pairwise(block.bound):
        if first.kind is second.kind is AxisKind.LOOP:
            ways = [(stride(index, r), written_stride(block, r)) for r in (first, second)]
            if ways[0] == tuple(None if s is None else s * second.size for s in ways[1]):
                return first.axis, second.axis
    return None
