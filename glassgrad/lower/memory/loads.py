"""LOAD -> loads: unit-stride lanes are vectors, other strides are shuffled from vectors."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from glassgrad.base.dtype import dtypes
from glassgrad.ir.cache_size import exceeds_cache
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.uop import UOp, const
from glassgrad.lower.constant_conditions import uniform_scalar, uniform_truth
from glassgrad.lower.memory.access import address, free_lane
from glassgrad.lower.memory.pointers import is_aligned
from glassgrad.lower.memory.transpose import find_transposed_axis, transpose_registers

if TYPE_CHECKING:
    from glassgrad.lower.emit import Emitter, UnrollCopy

LANE, INDEX, STACK = AxisKind.LANE, Ops.INDEX, Ops.STACK
HARDWARE_PREFETCH_STREAMS = 32  # streams of memory that a core's own prefetcher follows
TRANSPOSE_PREFETCH_BLOCKS = 2  # distance of prefetches, in blocks that are transposed in registers


def emit_load(emitter: Emitter, node: UOp, copy: UnrollCopy) -> UOp:
    """A LOAD in one unroll copy: scalar, vector, reversed, strided, transposed or per lane."""
    index = node.src[0]
    lane = free_lane(emitter, node, copy)
    if lane is None:
        element = _load_vector_element(emitter, node, copy)
        if element is not None:
            return element
        if index.gate is not None and uniform_truth(emitter.value(index.gate, copy)) is False:
            return emitter.constant(const(0, node.dtype))
        pointer = address(emitter, index, copy, None).pointer
        return emitter.scopes.emit(UOp(Ops.LOAD, node.dtype, (pointer,)))
    pointer, stride = address(emitter, index, copy, lane)
    if stride == 1:
        return emitter.scopes.emit(UOp(Ops.LOAD, node.dtype.vec(lane.size), (pointer,)))
    if stride in (-1, 2) and _has_uniform_gate(emitter, index, copy, lane):
        several = _load_reversed if stride == -1 else _load_stride_two
        return several(emitter, node, copy, lane)
    axis = find_transposed_axis(emitter, node, copy, lane)
    if axis is not None:
        return _load_transposed(emitter, node, copy, lane, axis)
    elements = tuple([emitter.value(node, {**copy, lane: i}) for i in range(lane.size)])
    return emitter.scopes.emit(UOp(STACK, node.dtype.vec(lane.size), elements))


def _load_transposed(emitter: Emitter, node: UOp, copy: UnrollCopy, lane: UOp, axis: UOp) -> UOp:
    """The rows of a block as vectors, transposed in registers; memoizes all columns, returns one.

    Prefetches the rows where they are more streams than the hardware prefetcher follows.
    """
    count, scopes = lane.size, emitter.scopes
    first = copy[axis] // count * count
    rows: list[UOp] = []
    streams = prod(r.size for r in emitter.unrolled(node) if r is not axis)
    needs_prefetch = streams > HARDWARE_PREFETCH_STREAMS and exceeds_cache(
        node.src[0], emitter.target
    )
    for i in range(count):
        at = address(emitter, node.src[0], {**copy, axis: first, lane: i}, None).pointer
        rows.append(scopes.emit(UOp(Ops.LOAD, node.dtype.vec(count), (at,))))
        if needs_prefetch:
            ahead = scopes.emit(
                UOp(
                    INDEX, at.dtype, (at, emitter.index_constant(TRANSPOSE_PREFETCH_BLOCKS * count))
                )
            )
            scopes.emit(UOp(Ops.PREFETCH, dtypes.void, (ahead,), False))
    columns = transpose_registers(scopes, rows)
    memo = scopes.stack[emitter.depth(node)].memo
    for i, column in enumerate(columns):
        memo[node, emitter.key(node, {**copy, axis: first + i})] = column
    return columns[copy[axis] - first]


def _has_uniform_gate(emitter: Emitter, index: UOp, copy: UnrollCopy, lane: UOp) -> bool:
    """True if the gate is equal in all lanes."""
    if index.gate is None or lane not in index.gate.ranges:
        return True
    return uniform_scalar(emitter.value(index.gate, copy)) is not None


def _load_stride_two(emitter: Emitter, node: UOp, copy: UnrollCopy, lane: UOp) -> UOp:
    """Lanes 0 2 4 6 of one vector and 1 3 5 7 of a second one, which ends with the last lane.

    Nothing outside of the first and last lane is accessed.
    """
    count, scopes = lane.size, emitter.scopes
    first = address(emitter, node.src[0], {**copy, lane: 0}, None).pointer
    gate = () if first.gate is None else (first.gate,)
    further = scopes.emit(
        UOp(INDEX, first.dtype, (first, emitter.index_constant(count - 1), *gate))
    )
    low, high = (
        scopes.emit(UOp(Ops.LOAD, node.dtype.vec(count), (pointer,)))
        for pointer in (first, further)
    )
    order = tuple([2 * i if 2 * i < count else 2 * i + 1 for i in range(count)])
    return scopes.emit(UOp(Ops.SHUFFLE, low.dtype, (low, high), order))


def _load_reversed(emitter: Emitter, node: UOp, copy: UnrollCopy, lane: UOp) -> UOp:
    """A vector that ends at the first lane's element, reversed."""
    last = {**copy, lane: lane.size - 1}
    pointer = address(emitter, node.src[0], last, None).pointer
    vector = emitter.scopes.emit(UOp(Ops.LOAD, node.dtype.vec(lane.size), (pointer,)))
    order = tuple(reversed(range(lane.size)))
    return emitter.scopes.emit(UOp(Ops.SHUFFLE, vector.dtype, (vector, vector), order))


def _load_vector_element(emitter: Emitter, node: UOp, copy: UnrollCopy) -> UOp | None:
    """Without vector arithmetic: one element of a vector load, if lanes are aligned."""
    if emitter.target.has_vector_alu:
        return None
    index = node.src[0]
    lane = next((r for r in emitter.unrolled(node) if r.kind is LANE), None)
    if lane is None or index.gate is not None or not is_aligned(index, lane):
        return None
    pointer = address(emitter, index, {**copy, lane: 0}, None).pointer
    vector = emitter.scopes.emit(UOp(Ops.LOAD, node.dtype.vec(lane.size), (pointer,)))
    return emitter.scopes.emit(UOp(Ops.GEP, node.dtype, (vector,), copy[lane]))
