"""Program -> the number of job steps in an iteration of each loop over cores.

A kernel executes the steps from `begin` to `end` of a job. One loop counts them; or several nested
loops count them like the digits of a number: inner loops run completely for each iteration of the
outer one, except at the first and last step of the job.
"""

from __future__ import annotations

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.uop import UOp


def steps_per_iteration(uops: tuple[UOp, ...]) -> dict[UOp, int]:
    """For every loop over cores, outermost first: the job steps in one iteration."""
    loops = [uop for uop in uops if uop.op is Ops.RANGE and uop.kind is AxisKind.CORE]
    found: dict[UOp, int] = {}
    inside = 1
    for loop in reversed(loops):
        found[loop] = inside
        inside *= loop.size
    return dict(reversed(found.items()))
