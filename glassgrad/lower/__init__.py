"""Nest -> Program: loops, registers, vectors and addresses in one flat list of instructions."""

from __future__ import annotations

from glassgrad.ir.coverage import check_stores
from glassgrad.ir.in_place import is_in_place
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest, Program, Target
from glassgrad.ir.uop import UOp
from glassgrad.lower.cleanup.dead_code import eliminate_dead_code
from glassgrad.lower.cleanup.interleave import interleave
from glassgrad.lower.emit import Emitter
from glassgrad.lower.math.legalize import legalize
from glassgrad.lower.memory.access import emit_stores, fill_stage
from glassgrad.lower.memory.non_temporal import mark_streamed_stores
from glassgrad.lower.memory.scratch import allocate_scratch
from glassgrad.lower.reduce.blocked_sums import strip_mine_sums


def lower(nest: Nest, target: Target, max_instructions: int | None = None) -> Program:
    """The instructions of a kernel, in order. Raises TooManyInstructionsError above
    `max_instructions`.
    """
    body = strip_mine_sums(legalize(nest.body, target))
    emitter = Emitter(target, body, nest.rewrites, max_instructions)
    for loop in nest.outer:
        emitter.open(loop)
    for statements in _groups(body, nest.rewrites):
        if statements[0].op is Ops.STORE:
            emit_stores(emitter, statements)
        else:
            fill_stage(emitter, statements[0])
    for loop in reversed(nest.outer):
        emitter.close(loop)
    lines = eliminate_dead_code(emitter.scopes.stack[0].lines)
    if target.has_hints and not target.has_threads:
        lines = mark_streamed_stores(interleave(lines, _in_place(body)), emitter)
    lines, scratch_bytes = allocate_scratch(lines)
    check_stores(body, lines)
    return Program(
        name=nest.name,
        uops=tuple(lines),
        cores=emitter.cores,
        groups=_sizes(emitter, AxisKind.GLOBAL),
        threads=_sizes(emitter, AxisKind.LOCAL, AxisKind.GROUP),
        scratch_bytes=scratch_bytes,
        label=nest.label,
    )


def _in_place(body: UOp) -> frozenset[UOp]:
    """The buffers that are overwritten, if each element is read only where it is written."""
    stores = [statement for statement in body.src if statement.op is Ops.STORE]
    if len(stores) < len(body.src) or not is_in_place(stores):
        return frozenset()
    return frozenset([store.buffer for store in stores])


def _groups(body: UOp, rewrites: bool) -> list[list[UOp]]:
    """The statements in order; neighbouring independent stores under the same loops are one
    group.
    """
    groups: list[list[UOp]] = []
    for statement in body.src:
        last = groups[-1] if groups else []
        if last and _join(last, statement) and (not rewrites or is_in_place([*last, statement])):
            last.append(statement)
        else:
            groups.append([statement])
    return groups


def _join(group: list[UOp], statement: UOp) -> bool:
    if statement.op is not Ops.STORE or group[0].op is not Ops.STORE:
        return False
    if statement.bound != group[0].bound or statement.arg is not None or group[0].arg is not None:
        return False
    return not any(store in statement.toposort() for store in group)


def _sizes(emitter: Emitter, *kinds: AxisKind) -> tuple[int, ...]:
    return tuple([r.size for r in emitter.grid if r.kind in kinds])
