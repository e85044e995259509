"""Split a long epilogue from its register tile, where unrolled copies of it would be many.

A tile has a dozen registers of sums. A bias adds one instruction for each; gelu adds forty, an
optimizer step twenty-five, and strided results are stored element by element.
"""

from __future__ import annotations

from math import prod

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.strides import written_stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.shared.recipe_builder import OP_WORK, RecipeBuilder

MIN_SUM_STEPS = 128  # reduction steps that hide the round trip through scratch
MAX_EPILOGUE_INSTRUCTIONS = 150  # instructions of the epilogue of a whole tile
# instructions per result: a dependency chain of this length is latency-bound, so
# lower/cleanup/interleave.py needs others to interleave with it
LATENCY_BOUND_WORK = 30
MIN_TRANSPOSED_ROWS = 4  # tile rows for which a transposition pays
# instructions per result, for tiles of one row: below, splitting costs up to 7% of short sums
MIN_SINGLE_ROW_WORK = 50
UNCOUNTED_OPS = frozenset((Ops.CONST, Ops.RANGE, Ops.INDEX, Ops.REDUCE, Ops.STAGE, Ops.STORE))


def split_long_epilogue(builder: RecipeBuilder) -> None:
    """Split the epilogue of a register tile if its unrolled code is long."""
    stores = builder.binders(Ops.STORE)
    registers = [r for r in builder.nest.outer if r.kind is AxisKind.UPCAST]
    if builder.target.has_threads or not registers or not _has_long_reduction(builder):
        return
    lane = next((r for r in builder.nest.outer if r.kind is AxisKind.LANE), None)
    if lane is not None and _transpose_in_scratch(builder, stores, lane, registers):
        return
    contiguous = lane or next((r for r in registers if written_stride(stores[0], r) == 1), None)
    lanes = (
        1 if contiguous is None or contiguous is lane else _lanes(builder, stores[0], contiguous)
    )
    vectors = prod(r.size for r in registers) // lanes
    arithmetic = _compute_instructions(builder, stores)
    instructions = arithmetic + _store_instructions(stores, lane)
    if vectors * instructions < MAX_EPILOGUE_INSTRUCTIONS:
        return
    axis = max(registers, key=lambda r: (r is not contiguous, r.size))
    if axis is contiguous and instructions < MIN_SINGLE_ROW_WORK:
        return
    step = lanes if axis is contiguous else 1
    vectors_per_step = vectors * step // axis.size
    fitting = [n for n in range(1, axis.size // step) if axis.size % (n * step) == 0]
    wanted = 4 if arithmetic >= LATENCY_BOUND_WORK else 2
    for amount in [n for n in fitting if n * vectors_per_step >= wanted][:1] or fitting[-1:]:
        builder.try_move(Opt(OptOps.SPLIT_EPILOGUE, axis.axis, amount * step))


def _transpose_in_scratch(
    builder: RecipeBuilder, stores: list[UOp], lane: UOp, registers: list[UOp]
) -> bool:
    """Transpose square blocks of a tile on the way through scratch, so that lanes that are strided
    in memory are stored as whole vectors along a row. Only for short epilogues, which are then
    fully unrolled.
    """
    copies = prod(r.size for r in registers)
    if any(written_stride(store, lane) == 1 for store in stores):
        return False
    if copies * _compute_instructions(builder, stores) >= MAX_EPILOGUE_INSTRUCTIONS:
        return False
    rows = [r for r in registers if all(written_stride(s, r) == 1 for s in stores)]
    is_square = bool(rows) and rows[0].size >= MIN_TRANSPOSED_ROWS and lane.size % rows[0].size == 0
    return is_square and builder.try_move(Opt(OptOps.SPLIT_EPILOGUE, lane.axis, rows[0].size))


def _has_long_reduction(builder: RecipeBuilder) -> bool:
    sums = builder.binders(Ops.REDUCE)
    return any(prod(r.size for r in reduce.bound) >= MIN_SUM_STEPS for reduce in sums)


def _lanes(builder: RecipeBuilder, store: UOp, axis: UOp) -> int:
    lanes = builder.lanes(store)
    while axis.size % lanes:
        lanes //= 2
    return lanes


def _compute_instructions(builder: RecipeBuilder, stores: list[UOp]) -> int:
    """Arithmetic instructions per register of results."""
    own = {node for store in stores for node in builder.own_nodes(store)}
    values = [node for node in own if node.dtype.kind != "index" and node.op not in UNCOUNTED_OPS]
    return sum(OP_WORK.get(node.op, 1) for node in values)


def _store_instructions(stores: list[UOp], lane: UOp | None) -> int:
    """Store instructions per register of results: two per element of a strided lane axis."""
    if lane is None:
        return len(stores)
    return sum(1 if written_stride(s, lane) == 1 else 2 * lane.size for s in stores)
