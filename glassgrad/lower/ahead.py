"""The next panel is asked for while sums go over this one: a PREFETCH in the loop of a sum.

What is packed into scratch for a block of loops mostly lies in memory where the block before ends.
Nothing would bring it near before its turn, as sums read scratch only; and while it is packed,
cores would wait for memory, and memory for cores while they multiply.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from glassgrad.base.dtype import dtypes
from glassgrad.ir.distance import is_far
from glassgrad.ir.linear import Linear, linear, plus
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.lower.pointers import Part, grow
from glassgrad.lower.scope import loops_of

if TYPE_CHECKING:
    from glassgrad.lower.emit import Emitter

ENOUGH = 12  # products in one step of a loop, beside which a PREFETCH costs little


def ask_for_next(emitter: Emitter, reduce: UOp, products: int) -> None:
    """In the innermost loop of a sum: a place behind what is packed in scratch, further on with
    every step, so that all of it has been asked for when the loops around the sum are done.
    """
    if products < ENOUGH or emitter.target.has_threads:
        return
    for node in reduce.value.toposort(stop=_is_read):
        if node.op is Ops.LOAD and node.buffer.op is Ops.STAGE:
            place = _behind(emitter, node.buffer)
            if place is not None:
                emitter.scopes.emit_here(UOp(Ops.PREFETCH, dtypes.void, (place,), False))


def _is_read(node: UOp) -> bool:
    return node.op is Ops.LOAD


def _behind(emitter: Emitter, stage: UOp) -> UOp | None:
    """A place behind the memory that a STAGE copies; None if it does not copy all of a stretch."""
    scopes, around = emitter.scopes, loops_of(stage.ranges)
    index = _copied(stage)
    if index is None or not around or not is_far(index, emitter.target):
        return None
    if not stage.bound or any(r.kind.is_unrolled for r in stage.ranges):
        return None
    depth = scopes.depth_of(around)
    inside = sorted(
        [r for r in scopes.depth if scopes.depth[r] > depth], key=scopes.depth.__getitem__
    )
    place = _unshifted(emitter.flat(index))
    count = _stretch(place, stage)
    if count is None or not all(r.src[0].is_const for r in inside):
        return None
    line = emitter.target.line_bytes // index.src[0].dtype.itemsize
    step = min(line, -(-count // prod(r.size for r in inside)))
    parts: list[Part] = []
    for r in reversed(inside):
        parts.append((scopes.depth[r], scopes.stack[scopes.depth[r]].lines[0], step))
        step *= r.size
    for atom, factor in place.terms.items():
        if atom.ranges.isdisjoint(stage.bound):
            value = emitter.value(atom, {})
            parts.append((scopes.where(value), value, factor))
    pointer = scopes.emit(index.src[0])
    return grow(emitter, pointer, parts, place.constant + count, None)


def _copied(stage: UOp) -> UOp | None:
    """The INDEX of what a STAGE copies, if it only copies or converts."""
    value = stage.value
    while value.op is Ops.CAST:
        value = value.src[0]
    return value.src[0] if value.op is Ops.LOAD else None


def _unshifted(place: Linear) -> Linear:
    """Where blocks would lie if the last one did not overlap the one before."""
    total = Linear({}, place.constant)
    for atom, factor in place.terms.items():
        is_shifted = atom.op is Ops.MIN and atom.src[1].is_const
        inner = _unshifted(linear(atom.src[0])) if is_shifted else Linear({atom: 1}, 0)
        total = plus(total, inner, factor)
    return total


def _stretch(place: Linear, stage: UOp) -> int | None:
    """How many elements of memory a STAGE copies, if they lie one behind the other."""
    bound = set(stage.bound)
    if any(not atom.ranges.isdisjoint(bound) and atom not in bound for atom in place.terms):
        return None
    steps = {r: place.terms.get(r, 0) for r in bound}
    count = prod(r.size for r in bound)
    last = sum((r.size - 1) * step for r, step in steps.items())
    return count if min(steps.values()) > 0 and last == count - 1 else None
