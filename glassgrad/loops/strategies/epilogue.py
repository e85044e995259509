"""When the results of a tile are written in a loop: where copies of what is done to them are many.

A tile has a dozen registers of sums. A bias costs a line for each; gelu costs forty, an optimiser's
step twenty-five, and results that lie apart in memory are written one by one.
"""

from __future__ import annotations

from math import prod

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.strides import written_stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.recipe_builder import OP_WORK, Draft

LONG = 128  # steps of a sum, beside which it does not matter that results go through scratch
MANY = 150  # instructions behind the sums of a tile, of which most are copies
HEAVY = 30  # instructions to one result, which others should fill (lower/cleanup/interleave.py)
FEWEST_ROWS = 4  # of a tile that are worth turning around
ONE_ROW = 50  # instructions to one result, if a tile is one row: 7% of the time of short ones
QUIET = frozenset((Ops.CONST, Ops.RANGE, Ops.INDEX, Ops.REDUCE, Ops.STAGE, Ops.STORE))


def shorten_epilogue(draft: Draft) -> None:
    """Take a tile of sums apart from what becomes of them, if that is long."""
    stores = draft.blocks(Ops.STORE)
    registers = [r for r in draft.nest.outer if r.kind is AxisKind.UPCAST]
    if draft.target.has_threads or not registers or not _has_long_sums(draft):
        return
    lane = next((r for r in draft.nest.outer if r.kind is AxisKind.LANE), None)
    if lane is not None and _turn_around(draft, stores, lane, registers):
        return
    along = lane or next((r for r in registers if written_stride(stores[0], r) == 1), None)
    lanes = 1 if along is None or along is lane else _lanes(draft, stores[0], along)
    vectors = prod(r.size for r in registers) // lanes
    computed = _computed(draft, stores)
    work = computed + _written(stores, lane)
    if vectors * work < MANY:
        return
    axis = max(registers, key=lambda r: (r is not along, r.size))
    if axis is along and work < ONE_ROW:
        return
    step = lanes if axis is along else 1
    others = vectors * step // axis.size
    fitting = [n for n in range(1, axis.size // step) if axis.size % (n * step) == 0]
    together = 4 if computed >= HEAVY else 2
    for amount in [n for n in fitting if n * others >= together][:1] or fitting[-1:]:
        draft.attempt(Opt(OptOps.APART, axis.axis, amount * step))


def _turn_around(draft: Draft, stores: list[UOp], lane: UOp, registers: list[UOp]) -> bool:
    """Lanes that lie apart in memory: square blocks of a tile are turned around on the way through
    scratch, so that whole vectors are written along a row; if little is computed, as that is then
    written out for all of them.
    """
    copies = prod(r.size for r in registers)
    if any(written_stride(store, lane) == 1 for store in stores):
        return False
    if copies * _computed(draft, stores) >= MANY:
        return False
    rows = [r for r in registers if all(written_stride(s, r) == 1 for s in stores)]
    is_square = bool(rows) and rows[0].size >= FEWEST_ROWS and lane.size % rows[0].size == 0
    return is_square and draft.attempt(Opt(OptOps.APART, lane.axis, rows[0].size))


def _has_long_sums(draft: Draft) -> bool:
    sums = draft.blocks(Ops.REDUCE)
    return any(prod(r.size for r in reduce.bound) >= LONG for reduce in sums)


def _lanes(draft: Draft, store: UOp, axis: UOp) -> int:
    lanes = draft.lanes(store)
    while axis.size % lanes:
        lanes //= 2
    return lanes


def _computed(draft: Draft, stores: list[UOp]) -> int:
    """Instructions that a register of results takes behind its sums."""
    own = {node for store in stores for node in draft.own_nodes(store)}
    values = [node for node in own if node.dtype.kind != "index" and node.op not in QUIET]
    return sum(OP_WORK.get(node.op, 1) for node in values)


def _written(stores: list[UOp], lane: UOp | None) -> int:
    """The same to write it: two for each element that lies apart."""
    if lane is None:
        return len(stores)
    return sum(1 if written_stride(s, lane) == 1 else 2 * lane.size for s in stores)
