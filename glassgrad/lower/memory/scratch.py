"""STAGE -> scratch memory; scratch whose live ranges do not overlap shares addresses."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from glassgrad.base.fast_dataclasses import mutable
from glassgrad.ir.linear import order, total
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.traverse import transform_nodes
from glassgrad.ir.uop import UOp

if TYPE_CHECKING:
    from glassgrad.lower.emit import Emitter

ALIGNMENT = 64  # bytes: a cache line, and the widest vector register
RANGE, END, SCRATCH = Ops.RANGE, Ops.END, Ops.SCRATCH
POINTERS = frozenset((Ops.INDEX, Ops.AFTER))


def is_shared(stage: UOp) -> bool:
    """True if the threads of a group fill the stage together."""
    return any(r.kind is AxisKind.GROUP for r in stage.bound)


def new_scratch(emitter: Emitter, node: UOp, lanes: int) -> UOp:
    """Memory of this core or thread; shared memory has a slice for each thread of the group."""
    local_ranges = sorted([r for r in node.ranges if r.kind is AxisKind.LOCAL], key=order)
    local_ranges = local_ranges if is_shared(node) else []
    each = lanes * prod(node.arg)
    elements = each * prod(r.size for r in local_ranges)
    number = emitter.scratches
    emitter.scratches += 1
    arg = (number, elements, 0, is_shared(node))  # allocate_scratch sets the offset
    scratch = emitter.scopes.emit(UOp(SCRATCH, node.dtype, (), arg), 0)
    if not local_ranges:
        return scratch
    strides = tuple(
        [each * prod(r.size for r in local_ranges[i + 1 :]) for i in range(len(local_ranges))]
    )
    part = emitter.value(total(tuple(local_ranges), strides), {})
    return emitter.scopes.emit(UOp(Ops.INDEX, node.dtype, (scratch, part)))


@mutable
class LiveRange:
    """The first and last instruction that use a scratch, and its size."""

    scratch: UOp
    first: int
    last: int
    nbytes: int
    offset: int = 0


def allocate_scratch(lines: Sequence[UOp]) -> tuple[list[UOp], int]:
    """The instructions with final scratch offsets, and the total number of bytes."""
    live_ranges = _live_ranges(lines)
    total = _assign_offsets(live_ranges)
    moved = {
        live.scratch: _with_offset(live)
        for live in live_ranges
        if live.scratch.arg[2] != live.offset
    }
    if not moved:
        return list(lines), total
    done = transform_nodes(lines, moved.get)
    return [done[line] for line in lines], total


def _live_ranges(lines: Sequence[UOp]) -> list[LiveRange]:
    """In order of appearance; a live range that crosses a loop boundary covers the whole loop."""
    owner: dict[UOp, UOp] = {}
    found: dict[UOp, LiveRange] = {}
    loops: list[tuple[int, int]] = []
    start_of: dict[UOp, int] = {}
    for number, line in enumerate(lines):
        if line.op is RANGE:
            start_of[line] = number
        elif line.op is END:
            loops.append((start_of[line.src[0]], number))
        if line.op is SCRATCH:
            owner[line] = line
            continue
        for source in line.src:
            if source in owner:
                _extend_live_range(found, owner[source], number)
        if line.op in POINTERS and line.src[0] in owner:
            owner[line] = owner[line.src[0]]
    for live in found.values():
        for start, end in loops:  # inner ones come before those around them
            is_inside = start < live.first and live.last < end
            if not is_inside and start <= live.last and live.first <= end:
                live.first, live.last = (
                    min(live.first, start),
                    max(live.last, end),
                )
        if live.scratch.arg[3]:  # other threads may still be reading it
            live.first, live.last = 0, len(lines)
    return list(found.values())


def _extend_live_range(found: dict[UOp, LiveRange], scratch: UOp, number: int) -> None:
    if scratch in found:
        found[scratch].last = number
    else:
        nbytes = scratch.arg[1] * scratch.dtype.itemsize
        found[scratch] = LiveRange(scratch, number, number, -(-nbytes // ALIGNMENT) * ALIGNMENT)


def _assign_offsets(live_ranges: list[LiveRange]) -> int:
    """First fit: the lowest offset that no overlapping live range occupies."""
    placed: list[LiveRange] = []
    for live in sorted(live_ranges, key=lambda found: found.first):
        overlapping = [m for m in placed if m.first <= live.last and live.first <= m.last]
        for other in sorted(overlapping, key=lambda found: found.offset):
            end = other.offset + other.nbytes
            if other.offset < live.offset + live.nbytes and live.offset < end:
                live.offset = end
        placed.append(live)
    return max((live.offset + live.nbytes for live in live_ranges), default=0)


def _with_offset(live: LiveRange) -> UOp:
    number, elements, _, is_shared = live.scratch.arg
    return live.scratch.replace(arg=(number, elements, live.offset, is_shared))
