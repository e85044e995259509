"""The state of lowering, and the passes as functions of it; `__init__.py` lists them in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from glassgrad.ir.in_place import is_in_place
from glassgrad.ir.ops import Ops
from glassgrad.ir.pattern import Rules
from glassgrad.ir.rewrite import rewrite
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp
from glassgrad.lower.cleanup.dead_code import eliminate_dead_code
from glassgrad.lower.cleanup.interleave import interleave
from glassgrad.lower.emit import Emitter
from glassgrad.lower.memory.access import emit_stores, fill_stage
from glassgrad.lower.memory.non_temporal import mark_non_temporal_stores
from glassgrad.lower.memory.scratch import allocate_scratch
from glassgrad.lower.reduce.blocked_sums import strip_mine_sums


class Request(NamedTuple):
    """What is lowered, for which machine, into how many instructions at most."""

    nest: Nest
    target: Target
    max_instructions: int | None = None

    @property
    def reorders(self) -> bool:
        """True if the target profits from reordered instructions and non-temporal stores."""
        return self.target.has_hints and not self.target.has_threads


class Lowering(NamedTuple):
    """The state between two passes: `lines` are the instructions, empty before `emit`."""

    body: UOp
    emitter: Emitter | None = None
    lines: tuple[UOp, ...] = ()
    scratch_bytes: int = 0

    @property
    def emitted(self) -> Emitter:
        assert self.emitter is not None, "no instructions are emitted yet"
        return self.emitter


def shown(state: Lowering) -> UOp | tuple[UOp, ...]:
    """What DEBUG=5 and the page show of a state."""
    return state.lines or state.body


def rewrite_body(rules: Rules) -> Callable[[Lowering, Request], Lowering]:
    """A rule table as a pass."""

    def run(state: Lowering, request: Request) -> Lowering:
        return state._replace(body=rewrite(state.body, rules, ctx=request.target))

    return run


def block_sums(state: Lowering, _: Request) -> Lowering:
    return state._replace(body=strip_mine_sums(state.body))


def emit(state: Lowering, request: Request) -> Lowering:
    """Expressions under ranges  ->  instructions in loops"""
    body, (nest, target, max_instructions) = state.body, request
    emitter = Emitter(target, body, nest.may_alias, max_instructions)
    for loop in nest.outer:
        emitter.open(loop)
    for statements in _groups(body, nest.may_alias):
        if statements[0].op is Ops.STORE:
            emit_stores(emitter, statements)
        else:
            fill_stage(emitter, statements[0])
    for loop in reversed(nest.outer):
        emitter.close(loop)
    return state._replace(emitter=emitter, lines=tuple(emitter.scopes.stack[0].lines))


def eliminate(state: Lowering, _: Request) -> Lowering:
    return state._replace(lines=tuple(eliminate_dead_code(state.lines)))


def interleave_chains(state: Lowering, request: Request) -> Lowering:
    if not request.reorders:
        return state
    return state._replace(lines=tuple(interleave(state.lines, _in_place(state.body))))


def use_non_temporal_stores(state: Lowering, request: Request) -> Lowering:
    if not request.reorders:
        return state
    return state._replace(lines=tuple(mark_non_temporal_stores(state.lines, state.emitted)))


def share_scratch(state: Lowering, _: Request) -> Lowering:
    lines, scratch_bytes = allocate_scratch(state.lines)
    return state._replace(lines=tuple(lines), scratch_bytes=scratch_bytes)


def _in_place(body: UOp) -> frozenset[UOp]:
    """The buffers that are overwritten, if each element is read only where it is written."""
    stores = [statement for statement in body.src if statement.op is Ops.STORE]
    if len(stores) < len(body.src) or not is_in_place(stores):
        return frozenset()
    return frozenset([store.buffer for store in stores])


def _groups(body: UOp, may_alias: bool) -> list[list[UOp]]:
    """The statements in order; neighbouring independent stores under the same loops are one
    group.
    """
    groups: list[list[UOp]] = []
    for statement in body.src:
        last = groups[-1] if groups else []
        if last and _can_join(last, statement, may_alias):
            last.append(statement)
        else:
            groups.append([statement])
    return groups


def _can_join(group: list[UOp], statement: UOp, may_alias: bool) -> bool:
    if statement.op is not Ops.STORE or group[0].op is not Ops.STORE:
        return False
    if statement.bound != group[0].bound or statement.arg is not None or group[0].arg is not None:
        return False
    if any(store in statement.toposort() for store in group):
        return False
    return not may_alias or is_in_place([*group, statement])
