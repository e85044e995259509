"""Program -> how many steps of a job one step of each loop over cores is.

A function does the steps from `begin` to `end` of a job. One loop counts them; or several, one
inside of the other, as digits count: the inner one goes through all of its steps for each of the
outer one, but where the job begins or ends in between.
"""

from __future__ import annotations

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.uop import UOp


def steps_of_cores(uops: tuple[UOp, ...]) -> dict[UOp, int]:
    """For every loop over cores, outermost first: how many steps of the job are in one of its."""
    loops = [uop for uop in uops if uop.op is Ops.RANGE and uop.kind is AxisKind.CORE]
    found: dict[UOp, int] = {}
    inside = 1
    for loop in reversed(loops):
        found[loop] = inside
        inside *= loop.size
    return dict(reversed(found.items()))
