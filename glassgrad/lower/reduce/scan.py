"""SCAN -> an accumulator that is read in every iteration; lanes are scanned in log steps.

Where the scan runs along the lanes, each vector is scanned by itself first and the carried value is
added to all lanes: only that addition waits for the vector before.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from glassgrad.base.dtype import ConstType, DType
from glassgrad.ir.facts import identity
from glassgrad.ir.ops import Ops
from glassgrad.ir.staged import scan_terms
from glassgrad.ir.uop import UOp
from glassgrad.lower.reduce.accumulators import new_accumulator
from glassgrad.lower.reduce.blocked_sums import total_dtype
from glassgrad.lower.scope import loops_of

if TYPE_CHECKING:
    from glassgrad.lower.emit import Emitter, UnrollCopy

MIN_FLOAT64_SCAN_STEPS = 8192  # carrying float64 vectors takes up to twice as long as float32
MULACC, MUL, STACK, GEP = Ops.MULACC, Ops.MUL, Ops.STACK, Ops.GEP


def emit_scan(emitter: Emitter, node: UOp, copy: UnrollCopy) -> UOp:
    """scan(x over r)  ->  acc = 0; for r: acc = acc + x, which is also the value at r

    All unroll copies are emitted at once, in order.
    """
    fixed = [r for r in emitter.unrolled(node) if r in copy and emitter.is_vector(r)]
    if fixed:  # one element of a vector
        together = {r: v for r, v in copy.items() if r is not fixed[0]}
        vector = emitter.value(node, together)
        return emitter.scopes.emit(UOp(GEP, node.dtype, (vector,), copy[fixed[0]]))
    depth = emitter.depth(node)
    memo = emitter.scopes.stack[depth].memo
    with emitter.scopes.at_depth(depth):
        others = [r for r in emitter.unrolled(node) if r not in node.bound]
        for wanted in emitter.copies(others):
            memo.update(_scan_copy(emitter, node, wanted))
    return memo[node, emitter.key(node, copy)]


def _scan_copy(
    emitter: Emitter, node: UOp, wanted: UnrollCopy
) -> dict[tuple[UOp, tuple[int | None, ...]], UOp]:
    """The values of all unrolled steps; the last one is assigned to the accumulator."""
    loops = loops_of(node.bound)
    steps = emitter.copies(node.bound, wanted)
    lanes = emitter.lanes(node, steps[0])
    is_along_lanes = any(emitter.is_vector(r) for r in node.bound)
    dtype = _carried_dtype(emitter, node, loops)
    is_wide = dtype is not node.dtype
    carried = _start(emitter, node, dtype.vec(1 if is_along_lanes and is_wide else lanes), loops)
    acc = carried if loops else None
    take = _scan_step_float64 if is_wide else _scan_step
    found = {}
    for step in steps:
        terms = [emitter.splat(emitter.value(source, step), lanes) for source in scan_terms(node)]
        if is_along_lanes:
            terms = _scan_vector(emitter, node.arg, terms)
        value, carried = take(emitter, node.arg, carried, terms, is_along_lanes)
        found[node, emitter.key(node, step)] = value
    if acc is not None:
        emitter.scopes.stack[-1].lines.append(UOp(Ops.ASSIGN, acc.dtype, (acc, carried)))
    return found


def _carried_dtype(emitter: Emitter, node: UOp, loops: tuple[UOp, ...]) -> DType:
    """A long running sum of floats is carried in float64 to avoid accumulating rounding errors."""
    is_long = node.arg is Ops.ADD and prod(r.size for r in loops) > MIN_FLOAT64_SCAN_STEPS
    return total_dtype(node.dtype, emitter.target) if is_long else node.dtype


def _scan_step(
    emitter: Emitter, op: Ops, carried: UOp, terms: list[UOp], is_along_lanes: bool
) -> tuple[UOp, UOp]:
    """One step: (its value, the carried value)."""
    value = _combined(emitter, op, carried, terms)
    if not is_along_lanes:
        return value, value
    lanes = terms[0].dtype.count
    last = [_shuffled(emitter, term, (lanes - 1,) * lanes, 0) for term in terms]
    return value, _combined(emitter, op, carried, last)


def _scan_step_float64(
    emitter: Emitter, op: Ops, carried: UOp, terms: list[UOp], is_along_lanes: bool
) -> tuple[UOp, UOp]:
    """The same with a carried float64 sum: one scalar where the scan runs along lanes."""
    (term,), here = terms, emitter.scopes.emit_here
    if not is_along_lanes:
        more = here(UOp(Ops.CAST, carried.dtype, (term,)))
        carried = _combined(emitter, op, carried, [more])
        return here(UOp(Ops.CAST, term.dtype, (carried,))), carried
    lanes, scalar = term.dtype.count, term.dtype.scalar
    previous = here(UOp(STACK, term.dtype, (here(UOp(Ops.CAST, scalar, (carried,))),) * lanes))
    last = here(UOp(Ops.CAST, carried.dtype, (here(UOp(GEP, scalar, (term,), lanes - 1)),)))
    return _combined(emitter, op, previous, terms), _combined(emitter, op, carried, [last])


def _start(emitter: Emitter, node: UOp, dtype: DType, loops: tuple[UOp, ...]) -> UOp:
    """The initial value: the identity, in an accumulator outside of the scan's loops."""
    scalar = dtype.scalar
    neutral = emitter.constant(UOp(Ops.CONST, scalar, (), identity(node.arg, scalar)))
    start = emitter.splat(neutral, dtype.count)
    if not loops:
        return start
    around = min(emitter.scopes.depth[loop] for loop in loops) - 1
    return new_accumulator(emitter, start, around)


def _scan_vector(emitter: Emitter, op: Ops, terms: list[UOp]) -> list[UOp]:
    """Scan within a vector: the upper half of each block adds the last lane of the lower half."""
    lanes = terms[0].dtype.count
    half = 1
    while half < lanes:
        previous = tuple([(i // half * half - 1 if i // half % 2 else -1) for i in range(lanes)])
        identities = [identity(op, terms[0].dtype.scalar), 1]
        moved = [
            _shuffled(emitter, term, previous, fill)
            for term, fill in zip(terms, identities, strict=False)
        ]
        combined = [_combined(emitter, op, moved[0], terms)]
        if op is MULACC:
            combined.append(_combined(emitter, MUL, moved[1], terms[1:]))
        terms, half = combined, half * 2
    return terms


def _combined(emitter: Emitter, op: Ops, previous: UOp, terms: list[UOp]) -> UOp:
    """before op x, emitted in the current loop, as `previous` changes in each iteration"""
    if op is MULACC:
        src: tuple[UOp, ...] = (previous, terms[1], terms[0])
    else:
        src = (previous, terms[0])
    return emitter.scopes.emit_here(UOp(op, previous.dtype, src))


def _shuffled(emitter: Emitter, vector: UOp, order: tuple[int, ...], fill: ConstType) -> UOp:
    """The lanes of a vector in a given order; a negative number stands for `fill`."""
    scalar = vector.dtype.scalar
    constant = emitter.constant(UOp(Ops.CONST, scalar, (), fill))
    parts = tuple(
        [
            emitter.scopes.emit(UOp(GEP, scalar, (vector,), lane)) if lane >= 0 else constant
            for lane in order
        ]
    )
    return emitter.scopes.emit(UOp(STACK, vector.dtype, parts))
