"""Strip-mine a long reduction so that epilogue prefetches go between its blocks.

When its sums are done, a tile reads and writes a few lines of memory in each of its rows. Requested
all at once, they exceed the line fill buffers of a core, and the operand loads stall with them.
"""

from __future__ import annotations

from math import gcd, prod

from glassgrad.ir.cache_size import exceeds_cache
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.strides import written_stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.shared.recipe_builder import RecipeBuilder

MIN_BLOCK_STEPS = 16  # reduction steps per block, next to which a loop costs nothing
MAX_OUTSTANDING_LINES = 16  # cache lines requested at once: about the line fill buffers of a core


def split_for_prefetches(builder: RecipeBuilder) -> None:
    """Split the reduction into a block per tile row, or as many as divide it evenly."""
    stores, sums = builder.binders(Ops.STORE), builder.binders(Ops.REDUCE)
    if builder.target.has_threads or builder.nest.mask_bounds or len(sums) != 1:
        return
    axes = [r for r in sums[0].bound if r.kind is AxisKind.REDUCE]
    tile = [r for r in builder.nest.outer if r.kind is AxisKind.UPCAST]
    rows = [r for r in tile if all(written_stride(store, r) != 1 for store in stores)]
    if len(axes) != 1 or len(rows) != 1 or not axes[0].src[0].is_const:
        return
    blocks = gcd(rows[0].size, axes[0].size)
    if blocks > 1 and axes[0].size >= blocks * MIN_BLOCK_STEPS:
        if _epilogue_lines(builder, stores, sums[0], tile) > MAX_OUTSTANDING_LINES:
            builder.try_move(Opt(OptOps.TILE, axes[0].axis, axes[0].size // blocks))


def _epilogue_lines(builder: RecipeBuilder, stores: list[UOp], reduce: UOp, tile: list[UOp]) -> int:
    """The cache lines in uncached memory that a tile needs after its sums."""
    nodes = {node for store in stores for node in builder.own_nodes(store)}
    if reduce not in nodes:
        return 0  # K blocks accumulate in scratch
    accesses = {n.src[0] for n in nodes if n.op is Ops.LOAD} | {store.src[0] for store in stores}
    uncached = [index for index in accesses if exceeds_cache(index, builder.target)]
    nbytes = sum([index.src[0].dtype.itemsize for index in uncached]) * prod(r.size for r in tile)
    return -(-nbytes // builder.target.line_bytes)
