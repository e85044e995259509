"""LOAD, STORE, STAGE -> addresses: pointers grow loop by loop, unit-stride lanes are vectors."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

from glassgrad.base.dtype import dtypes
from glassgrad.ir.distance import is_far
from glassgrad.ir.in_place import is_in_place
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.staged import added_over
from glassgrad.ir.uop import UOp, const
from glassgrad.lower.constant_conditions import uniform_scalar, uniform_truth
from glassgrad.lower.memory.pointers import AddressTerm, extend_pointer, is_aligned
from glassgrad.lower.memory.scratch import is_shared, new_scratch
from glassgrad.lower.memory.transpose import (
    find_interleaved_axis,
    find_transposed_axis,
    interleave_lanes,
    transpose_registers,
)
from glassgrad.lower.prefetch.epilogue import epilogue_loops, prefetch_epilogue
from glassgrad.lower.scope import loops_of

if TYPE_CHECKING:
    from glassgrad.lower.emit import Emitter, UnrollCopy

LANE, INDEX, STACK = AxisKind.LANE, Ops.INDEX, Ops.STACK
MAX_PENDING_VALUES = 8  # values that are computed before the first of them is written
HARDWARE_PREFETCH_STREAMS = 32  # runs of memory, whose next lines a machine fetches by itself
TRANSPOSE_PREFETCH_BLOCKS = 2  # of memory that is turned around in registers


class Address(NamedTuple):
    """A pointer and, if lanes are asked for, how far apart they are (None: not evenly)."""

    pointer: UOp
    stride: int | None


def _base_pointer(emitter: Emitter, buffer: UOp, copy: UnrollCopy) -> UOp:
    if buffer.op is Ops.PARAM:
        return emitter.scopes.emit(buffer)
    if buffer.op is Ops.STORE:
        if buffer not in emitter.buffers:
            emit_store(emitter, buffer)
        after, depth = emitter.buffers[buffer]
        return emitter.scopes.emit(after, depth)
    return emitter.value(buffer, copy)


def address(
    emitter: Emitter, index: UOp, copy: UnrollCopy, lane: UOp | None, has_gate: bool = True
) -> Address:
    """Where an INDEX points. Each loop's share is added in that loop, constants come last."""
    buffer, scopes = index.src[0], emitter.scopes
    pointer = _base_pointer(emitter, buffer, copy)
    factor = _stage_lanes(emitter, buffer, copy)
    terms, offset = emitter.flat(index)
    stride: int | None = 1 if factor > 1 and lane is not None else 0
    parts: list[AddressTerm] = []
    for atom, coefficient in terms.items():
        if atom is lane:
            stride = coefficient * factor
        elif lane is not None and lane in atom.ranges:
            return Address(pointer, None)
        elif atom in copy:
            offset += coefficient * copy[atom]
        elif (depth := scopes.depth.get(atom)) is not None:  # the number of an open loop
            parts.append((depth, scopes.stack[depth].lines[0], coefficient * factor))
        else:
            value = emitter.value(atom, copy)
            if value.is_const:
                offset += coefficient * value.arg
            else:
                parts.append((scopes.depth_of_instruction(value), value, coefficient * factor))
    gate = emitter.value(index.gate, copy) if has_gate and index.gate is not None else None
    if gate is not None:
        gate = None if uniform_truth(gate) else uniform_scalar(gate) or gate
    return Address(extend_pointer(emitter, pointer, parts, offset * factor, gate), stride)


def _stage_lanes(emitter: Emitter, buffer: UOp, copy: UnrollCopy) -> int:
    """A stage that depends on a lane keeps all lanes of an element next to each other."""
    return emitter.lanes(buffer, copy) if buffer.op is Ops.STAGE else 1


# ---------------------------------------------------------------------- loads


def emit_load(emitter: Emitter, node: UOp, copy: UnrollCopy) -> UOp:
    index = node.src[0]
    lane = free_lane(emitter, node, copy)
    if lane is None:
        together = _load_vector_element(emitter, node, copy)
        if together is not None:
            return together
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
    beside = find_transposed_axis(emitter, node, copy, lane)
    if beside is not None:
        return _load_transposed(emitter, node, copy, lane, beside)
    each = tuple([emitter.value(node, {**copy, lane: i}) for i in range(lane.size)])
    return emitter.scopes.emit(UOp(STACK, node.dtype.vec(lane.size), each))


def _load_transposed(emitter: Emitter, node: UOp, copy: UnrollCopy, lane: UOp, beside: UOp) -> UOp:
    """A block of memory by rows, of which this is a column; its other columns will be asked for.

    Where more rows go by side by side than a machine foresees, each is brought near before.
    """
    count, scopes = lane.size, emitter.scopes
    first = copy[beside] // count * count
    rows: list[UOp] = []
    together = prod(r.size for r in emitter.unrolled(node) if r is not beside)
    is_late = together > HARDWARE_PREFETCH_STREAMS and is_far(node.src[0], emitter.target)
    for i in range(count):
        at = address(emitter, node.src[0], {**copy, beside: first, lane: i}, None).pointer
        rows.append(scopes.emit(UOp(Ops.LOAD, node.dtype.vec(count), (at,))))
        if is_late:
            later = scopes.emit(
                UOp(
                    INDEX, at.dtype, (at, emitter.index_constant(TRANSPOSE_PREFETCH_BLOCKS * count))
                )
            )
            scopes.emit(UOp(Ops.PREFETCH, dtypes.void, (later,), False))
    columns = transpose_registers(scopes, rows)
    memo = scopes.stack[emitter.depth(node)].memo
    for i, column in enumerate(columns):
        memo[node, emitter.key(node, {**copy, beside: first + i})] = column
    return columns[copy[beside] - first]


def _has_uniform_gate(emitter: Emitter, index: UOp, copy: UnrollCopy, lane: UOp) -> bool:
    """Are all lanes loaded or none, whatever they are?"""
    if index.gate is None or lane not in index.gate.ranges:
        return True
    return uniform_scalar(emitter.value(index.gate, copy)) is not None


def _load_stride_two(emitter: Emitter, node: UOp, copy: UnrollCopy, lane: UOp) -> UOp:
    """Two vectors, the second ending with the last lane: 0 2 4 6 of the one, 1 3 5 7 of the other.

    Nothing outside of the first and last lane is touched.
    """
    count, scopes = lane.size, emitter.scopes
    first = address(emitter, node.src[0], {**copy, lane: 0}, None).pointer
    gate = () if first.gate is None else (first.gate,)
    further = scopes.emit(
        UOp(INDEX, first.dtype, (first, emitter.index_constant(count - 1), *gate))
    )
    low, high = (
        scopes.emit(UOp(Ops.LOAD, node.dtype.vec(count), (place,))) for place in (first, further)
    )
    order = tuple([2 * i if 2 * i < count else 2 * i + 1 for i in range(count)])
    return scopes.emit(UOp(Ops.SHUFFLE, low.dtype, (low, high), order))


def _load_reversed(emitter: Emitter, node: UOp, copy: UnrollCopy, lane: UOp) -> UOp:
    """A vector that ends where the first lane is, turned around."""
    last = {**copy, lane: lane.size - 1}
    pointer = address(emitter, node.src[0], last, None).pointer
    vector = emitter.scopes.emit(UOp(Ops.LOAD, node.dtype.vec(lane.size), (pointer,)))
    order = tuple(reversed(range(lane.size)))
    return emitter.scopes.emit(UOp(Ops.SHUFFLE, vector.dtype, (vector, vector), order))


def free_lane(emitter: Emitter, node: UOp, copy: UnrollCopy) -> UOp | None:
    for r in emitter.unrolled(node):
        if r.kind is LANE and r not in copy:
            return r
    return None


def _load_vector_element(emitter: Emitter, node: UOp, copy: UnrollCopy) -> UOp | None:
    """Without vector arithmetic: one element of a vector load, where lanes allow it."""
    if emitter.target.has_vector_alu:
        return None
    index = node.src[0]
    lane = next((r for r in emitter.unrolled(node) if r.kind is LANE), None)
    if lane is None or index.gate is not None or not is_aligned(index, lane):
        return None
    pointer = address(emitter, index, {**copy, lane: 0}, None).pointer
    vector = emitter.scopes.emit(UOp(Ops.LOAD, node.dtype.vec(lane.size), (pointer,)))
    return emitter.scopes.emit(UOp(Ops.GEP, node.dtype, (vector,), copy[lane]))


# ---------------------------------------------------------------------- stores


def emit_store(emitter: Emitter, node: UOp) -> None:
    """One STORE under its loops; those that are open already stay open."""
    emit_stores(emitter, [node])


def emit_stores(emitter: Emitter, nodes: list[UOp]) -> None:
    """STOREs under the same loops, register by register: few values are alive at a time."""
    nodes = [node for node in nodes if node not in emitter.buffers]
    if not nodes:
        return
    ranges = nodes[0].bound
    already = emitter.scopes.depth_of(
        tuple([r for r in loops_of(ranges) if r in emitter.scopes.depth])
    )
    with emitter.scopes.at_depth(already):
        inner = [r for r in ranges if r not in emitter.scopes.depth]
        later = tuple([r for r in epilogue_loops(nodes) if r in inner])
        for r in [r for r in inner if r not in later]:
            emitter.open(r)
        prefetch_epilogue(emitter, nodes, later)
        for r in later:
            emitter.open(r)
        for group in _store_groups(emitter, nodes, emitter.copies(ranges)):
            writes = [w for node, i in group for w in _writes(emitter, node, i)]
            _write_all(emitter, writes, _is_first_thread(emitter))
        emitter.prefetch_shares.clear()
        last: UOp | None = emitter.scopes.stack[-1].lines[-1]
        for r in reversed(inner):
            last = emitter.close(r) or last
        for node in nodes:
            buffer = node.buffer
            after = UOp(Ops.AFTER, buffer.dtype, (emitter.scopes.emit(buffer), last or buffer))
            emitter.buffers[node] = (after, already)


def _store_groups(
    emitter: Emitter, nodes: list[UOp], copies: list[UnrollCopy]
) -> list[list[tuple[UOp, UnrollCopy]]]:
    """What is computed before anything of it is written: a few values at once hide latencies."""
    every = [(node, i) for i in copies for node in nodes]
    must = emitter.rewrites and not is_in_place(nodes)
    return [every] if must or len(every) <= MAX_PENDING_VALUES else [[one] for one in every]


Write = tuple[UOp, UOp]  # where, what


def _writes(emitter: Emitter, node: UOp, copy: UnrollCopy) -> list[Write]:
    """What one instance of a store writes; lanes with unit stride are written as one vector."""
    index, value, ranges = node.src[0], node.src[1], node.bound
    lane = next((r for r in ranges if r.kind is LANE), None)
    if lane is not None and not emitter.is_vector(lane):
        is_plain = node.arg is None
        writes = _writes_of_scalar_lanes(emitter, index, value, copy, lane, is_plain)
    else:
        found = emitter.value(value, copy)
        writes = lane_writes(emitter, index, found, copy, lane)
    return (
        writes
        if node.arg is None
        else [_read_modify_write(emitter, node.arg, *write) for write in writes]
    )


def _read_modify_write(emitter: Emitter, op: Ops, pointer: UOp, value: UOp) -> Write:
    """What is there, combined with a value: read anew every time."""
    if op is Ops.ASSIGN:
        return pointer, value
    now = UOp(Ops.LOAD, value.dtype, (pointer,))
    update = UOp(op, value.dtype, (now, value))
    emitter.scopes.stack[-1].lines += [now, update]
    return pointer, update


def lane_writes(
    emitter: Emitter, index: UOp, found: UOp, copy: UnrollCopy, lane: UOp | None
) -> list[Write]:
    if lane is None:
        return [(address(emitter, index, copy, None).pointer, found)]
    found = emitter.splat(found, lane.size)
    pointer, stride = address(emitter, index, copy, lane)
    if stride == 1:
        return [(pointer, found)]
    parts = [
        emitter.scopes.emit(UOp(Ops.GEP, found.dtype.scalar, (found,), i)) for i in range(lane.size)
    ]
    places = [address(emitter, index, {**copy, lane: i}, None) for i in range(lane.size)]
    return [(place.pointer, part) for place, part in zip(places, parts, strict=True)]


def _writes_of_scalar_lanes(
    emitter: Emitter, index: UOp, value: UOp, copy: UnrollCopy, lane: UOp, is_together: bool
) -> list[Write]:
    """Lanes that were computed one by one are stored as one vector, when the first one comes."""
    is_vector = is_together and index.gate is None and is_aligned(index, lane)
    if is_vector and copy[lane]:
        return []
    pointer = address(emitter, index, copy, None).pointer
    if not is_vector:
        return [(pointer, emitter.value(value, copy))]
    parts = tuple([emitter.value(value, {**copy, lane: i}) for i in range(lane.size)])
    return [(pointer, emitter.scopes.emit(UOp(STACK, value.dtype.vec(lane.size), parts)))]


def _is_first_thread(emitter: Emitter) -> UOp | None:
    """Threads that shared a reduction all know its result: one of them writes it."""
    condition: UOp | None = None
    for r, special in emitter.grid.items():
        if r.kind is AxisKind.GROUP:
            first = emitter.scopes.emit(special.alu(Ops.CMPEQ, emitter.index_constant(0)))
            condition = first if condition is None else emitter.scopes.emit(condition & first)
    return condition


def _write_all(emitter: Emitter, writes: list[Write], condition: UOp | None = None) -> None:
    lines = emitter.scopes.stack[-1].lines
    opened = None if condition is None else UOp(Ops.IF, dtypes.void, (condition,))
    if opened is not None:
        lines.append(opened)
    lines.extend(UOp(Ops.STORE, dtypes.void, write) for write in writes)
    if opened is not None:
        lines.append(UOp(Ops.ENDIF, dtypes.void, (opened,)))


# ---------------------------------------------------------------------- stages


def fill_stage(emitter: Emitter, node: UOp) -> None:
    """A value that must be known before what it is made of is overwritten."""
    for copy in emitter.copies(emitter.unrolled(node)):
        emitter.value(node, copy)


def emit_stage(emitter: Emitter, node: UOp, copy: UnrollCopy) -> UOp:
    """Fill scratch where the stage's outer loops are open; the pointer to it behind the fill."""
    value, indices, ranges = node.value, node.places, node.bound
    if not indices:
        return emitter.value(value, copy)
    depth = emitter.depth(node)
    base = {r: copy[r] for r in emitter.unrolled(node) if r in copy}
    lanes = emitter.lanes(node, copy)
    pointer = new_scratch(emitter, node, lanes)
    with emitter.scopes.at_depth(depth):
        if is_shared(node) and depth:  # others may still read what the last round left there
            emitter.scopes.stack[depth].lines.append(UOp(Ops.BARRIER))
        index = UOp(INDEX, node.dtype, (node, *indices))
        emitter.scopes.stack[depth].memo[node, emitter.key(node, base)] = pointer
        added = added_over(node)
        if added:
            placed = tuple([r for r in ranges if r not in added])
            emit_fill(emitter, index, node.const_like(0), placed, base)
        last = emit_fill(emitter, index, value, ranges, base, adds=bool(added))
        if is_shared(node):
            last = UOp(Ops.BARRIER, dtypes.void, (last,))
            emitter.scopes.stack[depth].lines.append(last)
    return emitter.scopes.emit(UOp(Ops.AFTER, node.dtype, (pointer, last)), depth)


def emit_fill(
    emitter: Emitter,
    index: UOp,
    value: UOp,
    ranges: tuple[UOp, ...],
    base: UnrollCopy,
    adds: bool = False,
) -> UOp:
    """Loops that write a value to scratch, or add it to what is there; their last line."""
    for r in ranges:
        emitter.open(r)
    own = next((r for r in ranges if emitter.is_vector(r)), None)
    turns = None if own is None else find_interleaved_axis(emitter, index, ranges, own)
    split = [r for r in ranges if r is not turns]
    for copy in emitter.copies(split, base):
        lane = own or free_lane(emitter, index.src[0], copy)
        if turns is not None and own is not None:
            writes = _interleaved_writes(emitter, index, value, copy, own, turns)
        else:
            found = emitter.value(value, copy)
            writes = lane_writes(emitter, index, found, copy, lane)
        if adds:
            writes = [_read_modify_write(emitter, Ops.ADD, *write) for write in writes]
        _write_all(emitter, writes)
    last = emitter.scopes.stack[-1].lines[-1]
    for r in reversed(ranges):
        last = emitter.close(r) or last
    return last


def _interleaved_writes(
    emitter: Emitter, index: UOp, value: UOp, copy: UnrollCopy, lane: UOp, turns: UOp
) -> list[Write]:
    """Registers whose lanes lie in turn: as many vectors that lie one behind the other."""
    each = [emitter.value(value, {**copy, turns: i}) for i in range(turns.size)]
    each = [emitter.splat(one, lane.size) for one in each]
    first = address(emitter, index, {**copy, turns: 0, lane: 0}, None).pointer
    writes: list[Write] = []
    for place, vector in enumerate(interleave_lanes(emitter.scopes, each)):
        step = emitter.index_constant(place * lane.size)
        at = emitter.scopes.emit(UOp(INDEX, first.dtype, (first, step))) if place else first
        writes.append((at, vector))
    return writes
