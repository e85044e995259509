"""Strategy for large contractions: both operands packed, K-blocked (GotoBLAS/BLIS blocking).

Loops from the outside: shares of the result, which cores take; K blocks (KC); row blocks (MC);
columns (NR); rows (MR). The panels of a tile fit L1, a block of `left` fits L2, and what a share
reads of `right` fits L3.
"""

from __future__ import annotations

from math import prod

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.uop import UOp
from glassgrad.loops.moves.pack import MAX_SCRATCH_BYTES
from glassgrad.loops.nest import next_axis_number
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.shared.contraction_pattern import Contraction
from glassgrad.loops.strategies.shared.cores import (
    balanced_block_size,
    block_size,
    divide_tiles,
    is_balanced,
)
from glassgrad.loops.strategies.shared.recipe_builder import RecipeBuilder

KC = 256  # reduction steps per K block
MIN_DEPTH = 1024  # reduction steps below which K-blocking does not pay
LEFT_SHARE_OF_L2 = 3, 8  # fraction of L2 for a packed row block
PACKING_COST = 2.0  # cost of packing the other operand for a share, in tiles
# cost of packing an element of `left`, which is transposed, relative to `right`
LEFT_PACKING_COST = 3


def packed_gemm(builder: RecipeBuilder, found: Contraction) -> bool:
    """Order the loops around a register tile; False, with nothing changed, if the reduction is
    short.
    """
    k_block = k_block_of(found.reduce)
    loops = {r.axis: r for r in builder.nest.outer if r.kind is AxisKind.LOOP}
    if k_block is None or found.rows.axis not in loops or found.columns.axis not in loops:
        return False
    # every share of rows packs `right`
    by_rows = LEFT_PACKING_COST * found.rows.size > found.columns.size
    return any(_pack(builder, found, k_block, order) for order in (by_rows, not by_rows))


def _pack(
    builder: RecipeBuilder, found: Contraction, k_block: tuple[UOp, int], by_rows: bool
) -> bool:
    """Accumulate a share in scratch, one K block of packed `right` and row blocks of packed `left`
    at a time.
    """
    before, (axis, amount) = builder.nest, k_block
    outer, blocks = _order_loops(builder, found, by_rows)
    if not outer or not builder.try_move(Opt(OptOps.K_BLOCK, axis.axis, (outer[-1], amount))):
        builder.nest = before
        return False
    (sums,) = builder.binders(Ops.STAGE)
    _, first, *_ = [r for r in sums.bound if r.kind is AxisKind.LOOP]
    builder.try_move(Opt(OptOps.PACK, axis.axis, found.right.src[0].arg.slot))
    pack_axis = first if blocks else axis
    builder.try_move(Opt(OptOps.PACK, pack_axis.axis, found.left.src[0].arg.slot))
    return True


def _order_loops(
    builder: RecipeBuilder, found: Contraction, by_rows: bool
) -> tuple[list[int], list[int]]:
    """Tile and order the loops; returns the loops over shares and those over row blocks."""
    must_divide, max_tiles = builder.nest.may_alias, _max_tiles_in_scratch(builder, found.reduce)
    sizes = {r.axis: r.size for r in builder.nest.outer if r.kind is AxisKind.LOOP}
    row, column = found.rows.axis, found.columns.axis
    others = [axis for axis in sizes if axis not in (row, column)]
    tiles = _tiles_per_row_block(builder, found, sizes[row])
    if by_rows:
        limit = max(1, max_tiles // sizes[column] // tiles) * tiles
        height = _share_size(builder, sizes[row], limit, [sizes[axis] for axis in others])
        shares, row = _tile(builder, row, height)
        limit = max(1, min(sizes[column], max_tiles // _round_up(height, tiles)))
        panels, column = _tile(
            builder, column, block_size(sizes[column], limit, must_divide, PACKING_COST)
        )
        outer = shares + panels
    else:
        height = sizes[row]
        limit = max(1, max_tiles // _round_up(height, tiles))
        width = _share_size(builder, sizes[column], limit, [sizes[axis] for axis in others])
        shares, column = _tile(builder, column, width)
        outer = shares
    block = block_size(height, min(height, tiles), must_divide)
    blocks, row = _tile(builder, row, block)
    builder.order_outer_loops([*others, *outer, *blocks, column, row])
    divide_tiles(builder, [*others, *shares])
    return outer if shares else [], blocks


def _tile(builder: RecipeBuilder, axis: int, amount: int) -> tuple[list[int], int]:
    """Tile an axis: the loop over blocks, if there are several, and the loop inside."""
    number = next_axis_number(builder.nest)
    sizes = {r.axis: r.size for r in builder.nest.outer}
    if 1 < amount < sizes[axis] and builder.try_move(Opt(OptOps.TILE, axis, amount)):
        return [axis], number
    return [], axis


def _share_size(builder: RecipeBuilder, size: int, limit: int, others: list[int]) -> int:
    """The tiles of an axis per share, balanced among cores unless another axis is."""
    cores, must_divide = builder.target.cores, builder.nest.may_alias
    if any(is_balanced(other, cores) for other in others):
        return block_size(size, min(limit, -(-size // 2)), must_divide, PACKING_COST)
    limit = min(limit, -(-size // cores))  # every further share packs the other operand again
    return balanced_block_size(size, limit, cores, must_divide, PACKING_COST)


def _tiles_per_row_block(builder: RecipeBuilder, found: Contraction, tiles: int) -> int:
    """The row tiles of a packed block of `left` that fits its share of L2."""
    rows = -(-found.rows.size // tiles)
    numerator, denominator = LEFT_SHARE_OF_L2
    budget = builder.target.l2_bytes * numerator // denominator
    return max(1, budget // (rows * KC * found.reduce.dtype.itemsize))


def _round_up(rows: int, tiles: int) -> int:
    """Rows of tiles rounded up to whole blocks: the last block overlaps its neighbour."""
    return -(-rows // tiles) * tiles


def _max_tiles_in_scratch(builder: RecipeBuilder, reduce: UOp) -> int:
    """The number of tiles of sums that fit scratch."""
    tile = prod(r.size for r in builder.nest.outer if r.kind is AxisKind.UPCAST)
    return MAX_SCRATCH_BYTES // (tile * reduce.dtype.itemsize)


def k_block_of(reduce: UOp) -> tuple[UOp, int] | None:
    """The axis and block size of a reduction too deep for L1; None if it is short or has no such
    divisor.
    """
    outermost = reduce.bound[0]
    inner_steps = prod(r.size for r in reduce.bound[1:])
    if outermost.size * inner_steps < MIN_DEPTH or not outermost.src[0].is_const:
        return None
    amounts = [
        n for n in range(1, min(outermost.size, KC // inner_steps + 1)) if outermost.size % n == 0
    ]
    return (outermost, amounts[-1]) if amounts and amounts[-1] * inner_steps >= KC // 4 else None
