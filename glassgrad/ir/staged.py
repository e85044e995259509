"""STAGE -> the role of each of its loops: filling elements, accumulating, or carrying a scan.

A loop that the indices depend on fills elements. Other loops accumulate into the same elements. A
SCAN combines each step with the one before; where other loops run inside of a step, scratch carries
one value for each of their elements.
"""

from __future__ import annotations

from glassgrad.ir.ops import Exclusive, Ops
from glassgrad.ir.uop import UOp


def carried_loops(stage: UOp) -> tuple[UOp, ...]:
    """The loops of a STAGE's SCAN that run around its elements, none of whose indices depends on
    them except for loop bounds.

    A STAGE without indices is a register, which a SCAN carries by itself.
    """
    value = stage.value
    if value.op is not Ops.SCAN or not stage.arg:
        return ()
    return tuple(
        [r for r in value.bound if not _is_indexed(stage, r) or _has_inner_loops(stage, r)]
    )


def _has_inner_loops(stage: UOp, loop: UOp) -> bool:
    """True if other loops run inside. A SCAN along an index of the STAGE runs inside of all
    others.
    """
    bound = stage.bound
    inside = bound[bound.index(loop) + 1 :] if loop in bound else ()
    return any(other not in stage.value.bound for other in inside)


def accumulated_loops(stage: UOp) -> tuple[UOp, ...]:
    """The loops of a STAGE that revisit its elements: their values are added up."""
    carried = carried_loops(stage)
    return tuple([r for r in stage.bound if r not in carried and not _is_indexed(stage, r)])


def _is_indexed(stage: UOp, loop: UOp) -> bool:
    """True if some index depends on the loop."""
    return any(loop in index.ranges for index in stage.scratch_indices)


def scan_op(scan: UOp) -> Ops:
    """The op of an inclusive or exclusive SCAN."""
    op: Ops = scan.arg.op if isinstance(scan.arg, Exclusive) else scan.arg
    return op


def scan_terms(scan: UOp) -> tuple[UOp, ...]:
    """What a SCAN combines at each step: a value, and for MULACC a factor."""
    return scan.src[: len(scan.src) - len(scan.bound)]
