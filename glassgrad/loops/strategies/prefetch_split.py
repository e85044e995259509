"""Strip-mine a long reduction so that epilogue prefetches go between its blocks.

When its sums are done, a tile reads and writes a few lines of memory in each of its rows. Asked for
all at once they are more than a core can wait for, and what the sums read has to wait with them.
"""

from __future__ import annotations

from math import gcd, prod

from glassgrad.ir.distance import is_far
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.strides import written_stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.recipe_builder import Draft

SHORTEST = 16  # steps of a turn, beside which another loop costs nothing
MANY = 16  # lines of memory that should not be asked for at once


def take_turns(draft: Draft) -> None:
    """A turn for every row of a tile, or for as many rows as divide the sum evenly."""
    stores, sums = draft.blocks(Ops.STORE), draft.blocks(Ops.REDUCE)
    if draft.target.has_threads or draft.nest.limits or len(sums) != 1:
        return
    axes = [r for r in sums[0].bound if r.kind is AxisKind.REDUCE]
    tile = [r for r in draft.nest.outer if r.kind is AxisKind.UPCAST]
    rows = [r for r in tile if all(written_stride(store, r) != 1 for store in stores)]
    if len(axes) != 1 or len(rows) != 1 or not axes[0].src[0].is_const:
        return
    turns = gcd(rows[0].size, axes[0].size)
    if turns > 1 and axes[0].size >= turns * SHORTEST:
        if _lines_behind(draft, stores, sums[0], tile) > MANY:
            draft.attempt(Opt(OptOps.TILE, axes[0].axis, axes[0].size // turns))


def _lines_behind(draft: Draft, stores: list[UOp], reduce: UOp, tile: list[UOp]) -> int:
    """How many lines that are far away a tile needs when its sums are done."""
    nodes = {node for store in stores for node in draft.own_nodes(store)}
    if reduce not in nodes:
        return 0  # sums of parts are added to scratch
    found = {n.src[0] for n in nodes if n.op is Ops.LOAD} | {store.src[0] for store in stores}
    far = [index for index in found if is_far(index, draft.target)]
    nbytes = sum([index.src[0].dtype.itemsize for index in far]) * prod(r.size for r in tile)
    return -(-nbytes // draft.target.line_bytes)
