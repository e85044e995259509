"""Sums of low-precision products -> DOT instructions: each lane adds several products at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.dots import DotReduction, find_dot_reduction
from glassgrad.ir.linear import order
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.lower.memory.access import address

if TYPE_CHECKING:
    from glassgrad.lower.emit import Emitter, UnrollCopy


def find_dots(emitter: Emitter, reduce: UOp) -> DotReduction | None:
    """The dot product that a sum consists of; None if the operands' layout does not allow it."""
    found = find_dot_reduction(reduce, emitter.target)
    if found is None or not emitter.target.has_vector_alu:
        return None
    lanes = sorted([r for r in reduce.ranges if emitter.is_vector(r)], key=order)
    if len(lanes) != 1 or any(emitter.is_vector(r) for r in reduce.bound):
        return None
    (lane,) = lanes
    if lane.size * reduce.dtype.itemsize != emitter.target.vector_bytes:
        return None
    operands = [found.left] if found.right is None else [found.left, found.right]
    return found if all(_has_dot_layout(emitter, x, found.steps, lane) for x in operands) else None


def _has_dot_layout(emitter: Emitter, load: UOp, steps: UOp, lane: UOp) -> bool:
    """True if steps are contiguous and lanes follow them, or all lanes read the same."""
    if load.op is not Ops.LOAD or load.src[0].gate is not None:
        return False
    index = load.src[0]
    if lane in index.src[0].ranges:
        return False
    terms, _ = emitter.flat(index)
    mixed = [atom for atom in terms if atom.ranges & {steps, lane} and atom.op is not Ops.RANGE]
    return terms.get(steps) == 1 and terms.get(lane, steps.size) == steps.size and not mixed


def emit_dot(emitter: Emitter, found: DotReduction, total: UOp, copy: UnrollCopy) -> UOp:
    """total plus the products of all steps, in every lane"""
    count = total.dtype.count * found.steps.size
    left = _operand(emitter, found.left, found.steps, count, copy)
    if found.right is None:
        dtype = found.dot.left if found.is_swapped else found.dot.right
        right = _ones(emitter, dtype, count)
    else:
        right = _operand(emitter, found.right, found.steps, count, copy)
    pair = (right, left) if found.is_swapped else (left, right)
    return emitter.scopes.emit_here(UOp(Ops.DOT, total.dtype, (*pair, total), found.dot))


def _operand(emitter: Emitter, load: UOp, steps: UOp, count: int, copy: UnrollCopy) -> UOp:
    """All lanes of a vector load, or the steps of one lane splat to all lanes."""
    emit, dtype = emitter.scopes.emit, load.dtype
    first = {**copy, steps: 0}
    lane = next((r for r in load.ranges if emitter.is_vector(r)), None)
    pointer = address(emitter, load.src[0], first, lane).pointer
    if lane is not None:
        return emit(UOp(Ops.LOAD, dtype.vec(count), (pointer,)))
    few = emit(UOp(Ops.LOAD, dtype.vec(steps.size), (pointer,)))
    one = emit(UOp(Ops.BITCAST, dtypes.int32, (few,)))
    every = emitter.splat(one, count // steps.size)
    return emit(UOp(Ops.BITCAST, dtype.vec(count), (every,)))


def _ones(emitter: Emitter, dtype: DType, count: int) -> UOp:
    one = emitter.scopes.emit(UOp(Ops.CONST, dtype, (), 1))
    return emitter.splat(one, count)
