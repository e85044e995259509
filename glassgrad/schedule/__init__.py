"""Graph -> Schedule: each value is computed where it is used, staged inside a kernel, or stored.

PASSES lists the passes in order.
"""

from __future__ import annotations

from collections.abc import Sequence

from glassgrad.ir.pass_runner import Pass, run_passes
from glassgrad.ir.stages import Schedule, Target
from glassgrad.ir.uop import UOp
from glassgrad.schedule import pass_functions as passes
from glassgrad.schedule.kernels.build import base_buffer
from glassgrad.schedule.pass_functions import Scheduling, shown

PASSES: tuple[Pass[Scheduling, Target], ...] = (
    Pass("normalize and split long reductions", passes.normalize_graph),
    Pass("fuse convolution gradients", passes.fuse_gradients),
    Pass("rematerialize attention scores", passes.rematerialize),
    Pass("resolve write hazards", passes.resolve_hazards),
    Pass("choose materialization, layouts and rematerialization", passes.materialize),
    Pass("mark scatters", passes.mark_scatters),
    Pass("fuse statements and row blocks", passes.fuse),
    Pass("build kernels", passes.build_kernels),
    Pass("zero uncovered buffers", passes.zero),
)


def schedule(roots: Sequence[UOp], target: Target) -> Schedule:
    """The kernels that compute these values, in order."""
    return run_passes(PASSES, Scheduling(list(roots)), target, shown).result


__all__ = ["base_buffer", "schedule"]
