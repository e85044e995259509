"""Scratch: memory for a STAGE, and which of it may lie where other scratch was, as nobody reads
that any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from glassgrad.base.fast_dataclasses import mutable
from glassgrad.ir.linear import order, total
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.uop import UOp

if TYPE_CHECKING:
    from glassgrad.lower.emit import Emitter

ALIGNMENT = 64
RANGE, END, SCRATCH = Ops.RANGE, Ops.END, Ops.SCRATCH
POINTERS = frozenset((Ops.INDEX, Ops.AFTER))


def is_shared(stage: UOp) -> bool:
    """Do the threads of a group fill it together?"""
    return any(r.kind is AxisKind.GROUP for r in stage.bound)


def new_scratch(emitter: Emitter, node: UOp, lanes: int) -> UOp:
    """Memory of this core or thread; what a group shares has a part for each of its elements."""
    own = sorted([r for r in node.ranges if r.kind is AxisKind.LOCAL], key=order)
    own = own if is_shared(node) else []
    each = lanes * prod(node.arg)
    elements = each * prod(r.size for r in own)
    number = emitter.scratches
    emitter.scratches += 1
    arg = (number, elements, 0, is_shared(node))  # share_scratch finds a place for it
    scratch = emitter.scopes.emit(UOp(SCRATCH, node.dtype, (), arg), 0)
    if not own:
        return scratch
    strides = tuple([each * prod(r.size for r in own[i + 1 :]) for i in range(len(own))])
    part = emitter.value(total(tuple(own), strides), {})
    return emitter.scopes.emit(UOp(Ops.INDEX, node.dtype, (scratch, part)))


@mutable
class LiveRange:
    """The lines between which a scratch is needed, and how many bytes it has."""

    scratch: UOp
    first: int
    last: int
    nbytes: int
    offset: int = 0


def allocate_scratch(lines: Sequence[UOp]) -> tuple[list[UOp], int]:
    """The lines with other offsets, and how many bytes there are in all."""
    lives = _live_ranges(lines)
    total = _assign_offsets(lives)
    moved = {
        life.scratch: _with_offset(life) for life in lives if life.scratch.arg[2] != life.offset
    }
    return (_rebuilt(lines, moved) if moved else list(lines)), total


def _live_ranges(lines: Sequence[UOp]) -> list[LiveRange]:
    """In order of appearance. A loop that a life only partly covers is covered as a whole."""
    owner: dict[UOp, UOp] = {}
    found: dict[UOp, LiveRange] = {}
    loops: list[tuple[int, int]] = []
    opened: dict[UOp, int] = {}
    for number, line in enumerate(lines):
        if line.op is RANGE:
            opened[line] = number
        elif line.op is END:
            loops.append((opened[line.src[0]], number))
        if line.op is SCRATCH:
            owner[line] = line
            continue
        for source in line.src:
            if source in owner:
                _extend_live_range(found, owner[source], number)
        if line.op in POINTERS and line.src[0] in owner:
            owner[line] = owner[line.src[0]]
    for life in found.values():
        for start, end in loops:  # inner ones come before those around them
            is_inside = start < life.first and life.last < end
            if not is_inside and start <= life.last and life.first <= end:
                life.first, life.last = min(life.first, start), max(life.last, end)
        if life.scratch.arg[3]:  # other threads may still be reading it
            life.first, life.last = 0, len(lines)
    return list(found.values())


def _extend_live_range(found: dict[UOp, LiveRange], scratch: UOp, number: int) -> None:
    if scratch in found:
        found[scratch].last = number
    else:
        nbytes = scratch.arg[1] * scratch.dtype.itemsize
        found[scratch] = LiveRange(scratch, number, number, -(-nbytes // ALIGNMENT) * ALIGNMENT)


def _assign_offsets(lives: list[LiveRange]) -> int:
    """Each as low as those allow that are needed at the same time."""
    placed: list[LiveRange] = []
    for life in sorted(lives, key=lambda found: found.first):
        met = [m for m in placed if m.first <= life.last and life.first <= m.last]
        for other in sorted(met, key=lambda found: found.offset):
            end = other.offset + other.nbytes
            if other.offset < life.offset + life.nbytes and life.offset < end:
                life.offset = end
        placed.append(life)
    return max((life.offset + life.nbytes for life in lives), default=0)


def _with_offset(life: LiveRange) -> UOp:
    number, elements, _, is_shared = life.scratch.arg
    return life.scratch.replace(arg=(number, elements, life.offset, is_shared))


def _rebuilt(lines: Sequence[UOp], moved: dict[UOp, UOp]) -> list[UOp]:
    done = dict(moved)
    for line in lines:
        if line not in done:
            src = tuple([done.get(source, source) for source in line.src])
            done[line] = line if src == line.src else UOp(line.op, line.dtype, src, line.arg)
    return [done[line] for line in lines]
