"""Nest -> Program: loops, registers, vectors and addresses in one flat list of instructions.

PASSES lists the passes in order.
"""

from __future__ import annotations

from glassgrad.ir.algebra import ALGEBRA
from glassgrad.ir.coverage import check_stores
from glassgrad.ir.ops import AxisKind
from glassgrad.ir.pass_runner import Pass, run_passes
from glassgrad.ir.stages import Nest, Program, Target
from glassgrad.lower import pass_functions as passes
from glassgrad.lower.emit import Emitter
from glassgrad.lower.math.legalize import DIVISION, FUNCTIONS, LOW_PRECISION
from glassgrad.lower.pass_functions import Lowering, Request, rewrite_body

PASSES = (
    Pass("simplify values", rewrite_body(ALGEBRA)),
    Pass("emulate low precision", rewrite_body(LOW_PRECISION)),
    Pass("expand functions", rewrite_body(FUNCTIONS)),
    Pass("expand floored division", rewrite_body(DIVISION)),
    Pass("simplify expanded values", rewrite_body(ALGEBRA)),
    Pass("block long sums", passes.block_sums),
    Pass("emit instructions", passes.emit),
    Pass("eliminate dead code", passes.eliminate),
    Pass("interleave dependency chains", passes.interleave_chains),
    Pass("use non-temporal stores", passes.use_non_temporal_stores),
    Pass("share scratch memory", passes.share_scratch),
)


def lower(nest: Nest, target: Target, max_instructions: int | None = None) -> Program:
    """The instructions of a kernel, in order. Raises TooManyInstructionsError above
    `max_instructions`.
    """
    request = Request(nest, target, max_instructions)
    state = run_passes(PASSES, Lowering(nest.body), request, passes.shown)
    check_stores(state.body, state.lines)
    return Program(
        name=nest.name,
        uops=state.lines,
        cores=state.emitted.cores,
        groups=_sizes(state.emitted, AxisKind.GLOBAL),
        threads=_sizes(state.emitted, AxisKind.LOCAL, AxisKind.GROUP),
        scratch_bytes=state.scratch_bytes,
        label=nest.label,
    )


def _sizes(emitter: Emitter, *kinds: AxisKind) -> tuple[int, ...]:
    return tuple([r.size for r in emitter.grid if r.kind in kinds])
