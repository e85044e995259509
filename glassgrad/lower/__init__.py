"""Nest -> Program: loops, registers, vectors and addresses in one flat list of instructions."""

from __future__ import annotations

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest, Program, Target
from glassgrad.lower.emit import Emitter
from glassgrad.lower.memory import fill_now, store
from glassgrad.lower.prepare import prepare


def lower(nest: Nest, target: Target) -> Program:
    """The instructions of a kernel, in order."""
    body = prepare(nest.body, target)
    emitter = Emitter(target, body, nest.rewrites)
    for loop in nest.outer:
        emitter.open(loop)
    for statement in body.src:
        if statement.op is Ops.STORE:
            store(emitter, statement)
        else:
            fill_now(emitter, statement)
    for loop in reversed(nest.outer):
        emitter.close(loop)
    return Program(
        name=nest.name,
        uops=tuple(emitter.scopes.stack[0].lines),
        cores=emitter.core.size if emitter.core is not None else 1,
        groups=_sizes(emitter, AxisKind.GLOBAL),
        threads=_sizes(emitter, AxisKind.LOCAL, AxisKind.GROUP),
        scratch_bytes=emitter.scratch_bytes,
        label=nest.label,
    )


def _sizes(emitter: Emitter, *kinds: AxisKind) -> tuple[int, ...]:
    return tuple([r.size for r in emitter.grid if r.kind in kinds])
