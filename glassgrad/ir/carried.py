"""STAGE -> the loops from whose steps to the next it carries something.

A SCAN combines a value with what it was one step before. Where other loops run inside of that step,
each of their elements has a value of its own, and all of them are kept in the scratch of a STAGE.
"""

from __future__ import annotations

from glassgrad.ir.ops import Before, Ops
from glassgrad.ir.uop import UOp


def carried_over(stage: UOp) -> tuple[UOp, ...]:
    """The loops of the SCAN that a STAGE holds, if none of the places depends on them.

    A STAGE without places is a register, which a SCAN carries by itself.
    """
    value = stage.src[0]
    if value.op is not Ops.SCAN or not stage.arg:
        return ()
    places = stage.places
    return tuple([r for r in value.bound if all(r not in place.ranges for place in places)])


def combined_by(scan: UOp) -> Ops:
    """The op of a SCAN, whether or not it leaves its own step out."""
    op: Ops = scan.arg.op if isinstance(scan.arg, Before) else scan.arg
    return op


def terms_of(scan: UOp) -> tuple[UOp, ...]:
    """What a SCAN combines at each step: a value, and a factor if it is by MULACC."""
    return scan.src[: len(scan.src) - len(scan.bound)]
