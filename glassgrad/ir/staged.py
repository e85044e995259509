"""STAGE -> what its loops do: each fills other places, adds to the same ones, or goes step by step.

A loop that places depend on fills them. What another one brings is added up there. Only a SCAN goes
from step to step: it combines a value with what it was one step before. Where other loops run
inside of that step, each of their elements has a value of its own, and scratch keeps all of them.
"""

from __future__ import annotations

from glassgrad.ir.ops import Exclusive, Ops
from glassgrad.ir.uop import UOp


def carried_loops(stage: UOp) -> tuple[UOp, ...]:
    """The loops of the SCAN that a STAGE holds, if they run around its places: none of these
    depends on them, but for where the loops inside begin and end.

    A STAGE without places is a register, which a SCAN carries by itself.
    """
    value = stage.value
    if value.op is not Ops.SCAN or not stage.arg:
        return ()
    return tuple([r for r in value.bound if not _is_placed(stage, r) or _is_around(stage, r)])


def _is_around(stage: UOp, loop: UOp) -> bool:
    """Do other loops run inside? A SCAN along one of its places runs inside of all others."""
    bound = stage.bound
    inside = bound[bound.index(loop) + 1 :] if loop in bound else ()
    return any(other not in stage.value.bound for other in inside)


def accumulated_loops(stage: UOp) -> tuple[UOp, ...]:
    """The loops of a STAGE that come past the same places again and again: their sum is kept."""
    carried = carried_loops(stage)
    return tuple([r for r in stage.bound if r not in carried and not _is_placed(stage, r)])


def _is_placed(stage: UOp, loop: UOp) -> bool:
    """Is something else written at other steps of a loop?"""
    return any(loop in place.ranges for place in stage.scratch_indices)


def scan_op(scan: UOp) -> Ops:
    """The op of a SCAN, whether or not it leaves its own step out."""
    op: Ops = scan.arg.op if isinstance(scan.arg, Exclusive) else scan.arg
    return op


def scan_terms(scan: UOp) -> tuple[UOp, ...]:
    """What a SCAN combines at each step: a value, and a factor if it is by MULACC."""
    return scan.src[: len(scan.src) - len(scan.bound)]
