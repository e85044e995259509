"""STAGE of a SCAN over loops around its elements -> scratch that every iteration updates.

All such stages over the same loop that are read after its end share one loop, so each iteration can
read what the others carry (lower/reduce/accumulators.py does the same with registers).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from glassgrad.base.dtype import dtypes
from glassgrad.ir.facts import identity
from glassgrad.ir.linear import add, scale
from glassgrad.ir.ops import AxisKind, Exclusive, Ops
from glassgrad.ir.staged import carried_loops, scan_op, scan_terms
from glassgrad.ir.uop import UOp, make_range
from glassgrad.lower.memory.access import emit_fill, emit_store, free_lane, lane_writes
from glassgrad.lower.memory.scratch import new_scratch

if TYPE_CHECKING:
    from glassgrad.lower.emit import Emitter, UnrollCopy


def find_carried_stages(body: UOp) -> dict[UOp, list[UOp]]:
    """Loop -> the STAGEs that it updates, in an order that depends on structure alone."""
    found: dict[UOp, list[UOp]] = {}
    seen, stack = {body}, [body]
    while stack:
        node = stack.pop()
        if node.op is Ops.STAGE and (over := carried_loops(node)) and over[0] in node.bound:
            found.setdefault(over[0], []).append(node)
        missing = [source for source in reversed(node.src) if source not in seen]
        seen.update(missing)
        stack.extend(missing)
    return found


def emit_carried_scan(emitter: Emitter, node: UOp, copy: UnrollCopy) -> UOp:
    """The pointer to the carried scratch: in this iteration, or after the last one."""
    over = carried_loops(node)
    base = {r: copy[r] for r in emitter.unrolled(node) if r in copy}
    if any(r not in node.bound for r in over):
        return _emit_step_in_loop(emitter, node, over, base)
    return _emit_loop(emitter, node, over, base)


def _emit_loop(emitter: Emitter, node: UOp, over: tuple[UOp, ...], base: UnrollCopy) -> UOp:
    """for c: s = s·f + x -> s[:] = 0; for c: for i: s[i] = s[i]·f + x"""
    depth = emitter.depth(node)
    memo = emitter.scopes.stack[depth].memo
    stages = [
        other
        for other in emitter.carried_stages[over[0]]
        if _shares_loops(emitter, other, node, over)
    ]
    pointers = {other: new_scratch(emitter, other, emitter.lanes(other, base)) for other in stages}
    with emitter.scopes.at_depth(depth):
        for other, pointer in pointers.items():
            memo[other, emitter.key(other, base)] = pointer
            _initialize(emitter, other, over, base)
        for r in over:
            emitter.open(r)
        for other in stages:
            _step(emitter, other, other, over, base)
        for statement in emitter.body.src:
            if over[0] in statement.bound:
                emit_store(emitter, statement)
        end: UOp | None = None
        for r in reversed(over):
            end = emitter.close(r)
        assert end is not None, f"nothing is carried: {node}"
        for other, pointer in pointers.items():
            after = UOp(Ops.AFTER, other.dtype, (pointer, end))
            memo[other, emitter.key(other, base)] = emitter.scopes.emit(after, depth)
    return memo[node, emitter.key(node, base)]


def _initialize(emitter: Emitter, node: UOp, over: tuple[UOp, ...], base: UnrollCopy) -> None:
    """Fill all of the scratch with the initial value, even elements that iteration 0 skips."""
    ranges = _loops_inside(node, over)
    if all(r.src[0].is_const for r in ranges):
        emit_fill(emitter, _index(node), _start(node), ranges, base)
        return
    number = 1 + max(r.axis for r in emitter.body.toposort() if r.op is Ops.RANGE)
    lanes = emitter.target.vector_bytes // node.dtype.itemsize
    *rows, last = [make_range(number + i, n) for i, n in enumerate(node.arg)]
    indices, loops = [*rows, last], [*rows, last]
    if last.size % lanes == 0:
        lane = make_range(number + len(rows) + 1, lanes, AxisKind.LANE)
        line = make_range(last.axis, last.size // lanes)
        indices[-1:], loops[-1:] = [add(scale(line, lanes), lane)], [line, lane]
    emit_fill(emitter, node.index(*indices), _start(node), tuple(loops), base)


def _shares_loops(emitter: Emitter, one: UOp, two: UOp, over: tuple[UOp, ...]) -> bool:
    """True if two stages are carried over the same loops, for the same unroll copies."""
    if carried_loops(one) != over or emitter.unrolled(one) != emitter.unrolled(two):
        return False
    return set(emitter.loops(one)) == set(emitter.loops(two))


def _emit_step_in_loop(emitter: Emitter, node: UOp, over: tuple[UOp, ...], base: UnrollCopy) -> UOp:
    """A stage read inside of its loop: state in scratch of its own, initialized outside."""
    lanes, depth = emitter.lanes(node, base), emitter.depth(node)
    around = min(emitter.scopes.depth[r] for r in over) - 1
    state = UOp(Ops.STAGE, node.dtype, (_start(node), *node.src[1:]), node.arg)
    emitter.scopes.stack[0].memo[state, ()] = new_scratch(emitter, node, lanes)
    with emitter.scopes.at_depth(around):
        emit_fill(emitter, _index(state), _start(node), _loops_inside(node, over), base)
    pointer = new_scratch(emitter, node, lanes)
    with emitter.scopes.at_depth(depth):
        emitter.scopes.stack[depth].memo[node, emitter.key(node, base)] = pointer
        last = _step(emitter, node, state, over, base)
    return emitter.scopes.emit(UOp(Ops.AFTER, node.dtype, (pointer, last)), depth)


def _step(emitter: Emitter, node: UOp, state: UOp, over: tuple[UOp, ...], base: UnrollCopy) -> UOp:
    """Loops that take everything in `state` one step on, and keep the values of `node`."""
    ranges, scan = _loops_inside(node, over), node.src[0]
    for r in ranges:
        emitter.open(r)
    own = next((r for r in ranges if emitter.is_vector(r)), None)
    lines = emitter.scopes.stack[-1].lines
    for copy in emitter.copies(ranges, base):
        lane = own or free_lane(emitter, node, copy)
        values = [emitter.value(term, copy) for term in scan_terms(scan)]
        parts = [lane_writes(emitter, _index(state), v, copy, lane) for v in values]
        found: list[UOp] = []
        for writes in zip(*parts, strict=True):
            pointer, first = writes[0]
            now = UOp(Ops.LOAD, first.dtype, (pointer,))
            then = _combined(scan, now, [value for _, value in writes])
            lines += [now, then, UOp(Ops.STORE, dtypes.void, (pointer, then))]
            found.append(now if isinstance(scan.arg, Exclusive) else then)
        if state is not node:
            target = lane_writes(emitter, _index(node), values[0], copy, lane)
            for (pointer, _), value in zip(target, found, strict=True):
                lines.append(UOp(Ops.STORE, dtypes.void, (pointer, value)))
    last = lines[-1]
    for r in reversed(ranges):
        last = emitter.close(r) or last
    return last


def _combined(scan: UOp, now: UOp, terms: list[UOp]) -> UOp:
    op = scan_op(scan)
    if op is Ops.MULACC:
        value, factor = terms
        return UOp(op, now.dtype, (now, factor, value))
    return UOp(op, now.dtype, (now, terms[0]))


def _start(node: UOp) -> UOp:
    """The initial value."""
    return node.const_like(identity(scan_op(node.src[0]), node.dtype))


def _index(node: UOp) -> UOp:
    return node.index(*node.scratch_indices)


def _loops_inside(node: UOp, over: tuple[UOp, ...]) -> tuple[UOp, ...]:
    """The loops within one iteration."""
    return tuple([r for r in node.bound if r not in over])
