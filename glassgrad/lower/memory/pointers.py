"""pointer, parts -> pointer: each loop's share is added in that loop, constants come last."""

from __future__ import annotations

from functools import partial, reduce
from itertools import groupby
from typing import TYPE_CHECKING

from glassgrad.ir.linear import Linear, flat
from glassgrad.ir.ops import Ops
from glassgrad.ir.strides import strides_of
from glassgrad.ir.uop import UOp

if TYPE_CHECKING:
    from glassgrad.lower.emit import Emitter, UnrollCopy

INDEX = Ops.INDEX

AddressTerm = tuple[
    int, UOp, int
]  # the depth of a value's loop, the value, how many elements it counts


def pointer_to(emitter: Emitter, buffer: UOp, place: Linear, copy: UnrollCopy) -> UOp:
    """The pointer to a place in a buffer of the kernel, for one instance."""
    scopes, offset = emitter.scopes, place.constant
    parts: list[AddressTerm] = []
    for atom, factor in place.terms.items():
        if atom in copy:
            offset += factor * copy[atom]
            continue
        value = emitter.value(atom, copy)
        if value.is_const:
            offset += factor * value.arg
        else:
            parts.append((scopes.depth_of_instruction(value), value, factor))
    return extend_pointer(emitter, scopes.emit(buffer), parts, offset, None)


def extend_pointer(
    emitter: Emitter, pointer: UOp, parts: list[AddressTerm], offset: int, gate: UOp | None
) -> UOp:
    """The pointer to an element, which a gate may close."""
    scopes, dtype = emitter.scopes, pointer.dtype
    parts.sort(key=_depth)
    if not emitter.target.has_vector_alu:
        place = _sum_terms(emitter, parts, offset)
        return scopes.emit(UOp(INDEX, dtype, (pointer, place, *([gate] if gate else []))))
    pointer = _advance_loop_by_loop(emitter, pointer, parts)
    if gate is not None or offset or pointer.op is not INDEX:
        last = (pointer, emitter.index_constant(offset), *([gate] if gate is not None else []))
        pointer = scopes.emit(UOp(INDEX, dtype, last))
    return pointer


def _depth(part: AddressTerm) -> int:
    return part[0]


def _sum_terms(emitter: Emitter, parts: list[AddressTerm], offset: int) -> UOp:
    """One number, which all buffers share."""
    place: UOp | None = None
    for _, value, factor in parts:
        step = emitter.times(value, factor)
        place = step if place is None else _plus(emitter, place, step)
    if place is None:
        return emitter.index_constant(offset)
    return _plus(emitter, place, emitter.index_constant(offset)) if offset else place


def _advance_loop_by_loop(emitter: Emitter, pointer: UOp, parts: list[AddressTerm]) -> UOp:
    """One INDEX for each loop. Most instances want the same, with another constant."""
    key = (pointer, *parts)
    found = emitter.pointers.get(key)
    if found is not None and emitter.scopes.is_available(found):
        return found
    for _, group in groupby(parts, key=_depth):
        steps = [emitter.times(value, factor) for _, value, factor in group]
        step = reduce(partial(_plus, emitter), steps)
        pointer = emitter.scopes.emit(UOp(INDEX, pointer.dtype, (pointer, step)))
    emitter.pointers[key] = pointer
    return pointer


def _plus(emitter: Emitter, left: UOp, right: UOp) -> UOp:
    return emitter.scopes.emit(UOp(Ops.ADD, left.dtype, (left, right)))


def is_aligned(index: UOp, lane: UOp) -> bool:
    """Do the lanes follow each other, starting at a multiple of their number?"""
    terms, offset = flat(index.indices, strides_of(index.src[0]))
    rest = [c for atom, c in terms.items() if atom is not lane]
    splat = any(lane in atom.ranges for atom in terms if atom is not lane)
    return terms.get(lane) == 1 and not splat and all(c % lane.size == 0 for c in (offset, *rest))
