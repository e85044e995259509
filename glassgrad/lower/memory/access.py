"""STORE, STAGE -> stores: pointers advance loop by loop, unit-stride lanes are vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from glassgrad.base.dtype import dtypes
from glassgrad.ir.in_place import is_in_place
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.staged import accumulated_loops
from glassgrad.ir.uop import UOp
from glassgrad.lower.constant_conditions import uniform_scalar, uniform_truth
from glassgrad.lower.memory.pointers import AddressTerm, extend_pointer, is_aligned
from glassgrad.lower.memory.scratch import is_shared, new_scratch
from glassgrad.lower.memory.transpose import (
    find_interleaved_axis,
    interleave_lanes,
)
from glassgrad.lower.prefetch.epilogue import epilogue_loops, prefetch_epilogue
from glassgrad.lower.scope import loops_of

if TYPE_CHECKING:
    from glassgrad.lower.emit import Emitter, UnrollCopy

LANE, INDEX, STACK = AxisKind.LANE, Ops.INDEX, Ops.STACK
MAX_PENDING_VALUES = 8  # computed before the first of them is stored; more would spill registers


class Address(NamedTuple):
    """A pointer and the distance between its lanes in elements (None: not constant)."""

    pointer: UOp
    stride: int | None


def _base_pointer(emitter: Emitter, buffer: UOp, copy: UnrollCopy) -> UOp:
    if buffer.op is Ops.PARAM:
        return emitter.scopes.emit(buffer)
    if buffer.op is Ops.STORE:
        if buffer not in emitter.buffers:
            emit_store(emitter, buffer)
        after, scope = emitter.buffers[buffer]
        assert scope in emitter.scopes.stack, "a store is read before the end of its loops"
        return emitter.scopes.emit(after, scope.depth)
    return emitter.value(buffer, copy)


def address(
    emitter: Emitter, index: UOp, copy: UnrollCopy, lane: UOp | None, has_gate: bool = True
) -> Address:
    """The address of an INDEX: each loop's term is added in that loop, constants come last."""
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
    """A stage that depends on the lane keeps the lanes of each element adjacent."""
    return emitter.lanes(buffer, copy) if buffer.op is Ops.STAGE else 1


def free_lane(emitter: Emitter, node: UOp, copy: UnrollCopy) -> UOp | None:
    for r in emitter.unrolled(node):
        if r.kind is LANE and r not in copy:
            return r
    return None


# ---------------------------------------------------------------------- stores


def emit_store(emitter: Emitter, node: UOp) -> None:
    """One STORE under its loops; open loops stay open."""
    emit_stores(emitter, [node])


def emit_stores(emitter: Emitter, nodes: list[UOp]) -> None:
    """STOREs under the same loops, register by register, to keep few values live."""
    nodes = [node for node in nodes if node not in emitter.buffers]
    if not nodes:
        return
    ranges = nodes[0].bound
    already = emitter.scopes.depth_of(
        tuple([r for r in loops_of(ranges) if r in emitter.scopes.depth])
    )
    with emitter.scopes.at_depth(already):
        inner = [r for r in ranges if r not in emitter.scopes.depth]
        epilogue = tuple([r for r in epilogue_loops(nodes) if r in inner])
        for r in [r for r in inner if r not in epilogue]:
            emitter.open(r)
        prefetch_epilogue(emitter, nodes, epilogue)
        for r in epilogue:
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
            emitter.buffers[node] = (after, emitter.scopes.stack[already])


def _store_groups(
    emitter: Emitter, nodes: list[UOp], copies: list[UnrollCopy]
) -> list[list[tuple[UOp, UnrollCopy]]]:
    """Groups of stores whose values are computed before the first is written: overlapping a few
    hides latencies.
    """
    every = [(node, i) for i in copies for node in nodes]
    must = emitter.may_alias and not is_in_place(nodes)
    return [every] if must or len(every) <= MAX_PENDING_VALUES else [[one] for one in every]


Write = tuple[UOp, UOp]  # pointer, value


def _writes(emitter: Emitter, node: UOp, copy: UnrollCopy) -> list[Write]:
    """What one unroll copy of a store writes; unit-stride lanes are one vector."""
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
    """The element combined with the value; the element is loaded again each time."""
    if op is Ops.ASSIGN:
        return pointer, value
    now = UOp(Ops.LOAD, value.dtype, (pointer,))
    update = UOp(op, value.dtype, (now, value))
    emitter.scopes.stack[-1].lines += [now, update]
    return pointer, update


def lane_writes(
    emitter: Emitter, index: UOp, found: UOp, copy: UnrollCopy, lane: UOp | None
) -> list[Write]:
    """One write, or one for each lane if lanes are not contiguous."""
    if lane is None:
        return [(address(emitter, index, copy, None).pointer, found)]
    found = emitter.splat(found, lane.size)
    pointer, stride = address(emitter, index, copy, lane)
    if stride == 1:
        return [(pointer, found)]
    parts = [
        emitter.scopes.emit(UOp(Ops.GEP, found.dtype.scalar, (found,), i)) for i in range(lane.size)
    ]
    addresses = [address(emitter, index, {**copy, lane: i}, None) for i in range(lane.size)]
    return [(at.pointer, part) for at, part in zip(addresses, parts, strict=True)]


def _writes_of_scalar_lanes(
    emitter: Emitter, index: UOp, value: UOp, copy: UnrollCopy, lane: UOp, is_together: bool
) -> list[Write]:
    """Without vector arithmetic: all lanes as one vector store, emitted for lane 0."""
    is_vector = is_together and index.gate is None and is_aligned(index, lane)
    if is_vector and copy[lane]:
        return []
    pointer = address(emitter, index, copy, None).pointer
    if not is_vector:
        return [(pointer, emitter.value(value, copy))]
    parts = tuple([emitter.value(value, {**copy, lane: i}) for i in range(lane.size)])
    return [(pointer, emitter.scopes.emit(UOp(STACK, value.dtype.vec(lane.size), parts)))]


def _is_first_thread(emitter: Emitter) -> UOp | None:
    """All threads of a group know the result of their reduction: only one writes it."""
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
    """Fill a stage's scratch before a store overwrites what it reads."""
    for copy in emitter.copies(emitter.unrolled(node)):
        emitter.value(node, copy)


def emit_stage(emitter: Emitter, node: UOp, copy: UnrollCopy) -> UOp:
    """Fill scratch where the stage's outer loops are open; returns the pointer after the fill."""
    value, indices, ranges = node.value, node.scratch_indices, node.bound
    if not indices:
        return emitter.value(value, copy)
    depth = emitter.depth(node)
    base = {r: copy[r] for r in emitter.unrolled(node) if r in copy}
    lanes = emitter.lanes(node, copy)
    pointer = new_scratch(emitter, node, lanes)
    with emitter.scopes.at_depth(depth):
        if is_shared(node) and depth:  # threads may still read the previous iteration's contents
            emitter.scopes.stack[depth].lines.append(UOp(Ops.BARRIER))
        index = UOp(INDEX, node.dtype, (node, *indices))
        emitter.scopes.stack[depth].memo[node, emitter.key(node, base)] = pointer
        added = accumulated_loops(node)
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
    """Loops that write a value to scratch, or add it to the contents; returns their last line."""
    for r in ranges:
        emitter.open(r)
    own = next((r for r in ranges if emitter.is_vector(r)), None)
    axis = None if own is None else find_interleaved_axis(emitter, index, ranges, own)
    split = [r for r in ranges if r is not axis]
    for copy in emitter.copies(split, base):
        lane = own or free_lane(emitter, index.src[0], copy)
        if axis is not None and own is not None:
            writes = _interleaved_writes(emitter, index, value, copy, own, axis)
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
    emitter: Emitter, index: UOp, value: UOp, copy: UnrollCopy, lane: UOp, axis: UOp
) -> list[Write]:
    """Registers whose lanes interleave in memory, as contiguous vectors."""
    elements = [emitter.value(value, {**copy, axis: i}) for i in range(axis.size)]
    elements = [emitter.splat(one, lane.size) for one in elements]
    first = address(emitter, index, {**copy, axis: 0, lane: 0}, None).pointer
    writes: list[Write] = []
    for number, vector in enumerate(interleave_lanes(emitter.scopes, elements)):
        step = emitter.index_constant(number * lane.size)
        at = emitter.scopes.emit(UOp(INDEX, first.dtype, (first, step))) if number else first
        writes.append((at, vector))
    return writes
