"""pointer, terms -> pointer: each loop's term is added in that loop, constants come last."""

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

AddressTerm = tuple[int, UOp, int]  # depth of the value's loop, value, elements per unit of it


def pointer_to(emitter: Emitter, buffer: UOp, elements: Linear, copy: UnrollCopy) -> UOp:
    """The pointer to an element offset of a kernel buffer, in one unroll copy."""
    scopes, offset = emitter.scopes, elements.constant
    parts: list[AddressTerm] = []
    for atom, factor in elements.terms.items():
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
    """The pointer plus terms and a constant offset, with an optional gate."""
    scopes, dtype = emitter.scopes, pointer.dtype
    parts.sort(key=_depth)
    if not emitter.target.has_vector_alu:
        elements = _sum_terms(emitter, parts, offset)
        return scopes.emit(UOp(INDEX, dtype, (pointer, elements, *([gate] if gate else []))))
    pointer = _advance_loop_by_loop(emitter, pointer, parts)
    if gate is not None or offset or pointer.op is not INDEX:
        last = (pointer, emitter.index_constant(offset), *([gate] if gate is not None else []))
        pointer = scopes.emit(UOp(INDEX, dtype, last))
    return pointer


def _depth(part: AddressTerm) -> int:
    return part[0]


def _sum_terms(emitter: Emitter, parts: list[AddressTerm], offset: int) -> UOp:
    """Without vector arithmetic: one element offset, shared by all buffers."""
    elements: UOp | None = None
    for _, value, factor in parts:
        step = emitter.times(value, factor)
        elements = step if elements is None else _plus(emitter, elements, step)
    if elements is None:
        return emitter.index_constant(offset)
    return _plus(emitter, elements, emitter.index_constant(offset)) if offset else elements


def _advance_loop_by_loop(emitter: Emitter, pointer: UOp, parts: list[AddressTerm]) -> UOp:
    """One INDEX per loop, memoized: most unroll copies differ in the constant alone."""
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
    """True if the lanes are contiguous and start at a multiple of their count."""
    terms, offset = flat(index.indices, strides_of(index.src[0]))
    rest = [c for atom, c in terms.items() if atom is not lane]
    is_in_other_atoms = any(lane in atom.ranges for atom in terms if atom is not lane)
    return (
        terms.get(lane) == 1
        and not is_in_other_atoms
        and all(c % lane.size == 0 for c in (offset, *rest))
    )
