"""Recipes for large contractions: both operands packed, a part of the sum at a time.

Loops from the outside: shares of the result, which cores take; parts of the sum; blocks of rows;
columns; rows. Of a part, what a tile reads of both operands fits the nearest cache, a block of
`left` the second one, and what a share reads of `right` the last one.
"""

from __future__ import annotations

from math import prod

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.uop import UOp
from glassgrad.loops.analysis.contraction_pattern import Contraction
from glassgrad.loops.moves.pack import MOST_BYTES
from glassgrad.loops.nest import next_number
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.cores import divide_tiles, even_blocks, is_even, shared_blocks
from glassgrad.loops.strategies.recipe_builder import Draft

PART = 256  # steps of a sum
SHORT = 1024  # a sum of fewer steps is not worth it
LEFT_ROOM = 3, 8  # of the second cache, for a block of rows
PACKING = 2.0  # tiles that take as long as to pack the other operand for a share
LEFT_WORK = 3  # to pack an element of `left`, a few at a time; that of `right` is 1


def packed_recipe(draft: Draft, found: Contraction) -> bool:
    """Arrange the loops around a tile; False, and nothing done, if the sum is short."""
    part = part_of(found.reduce)
    loops = {r.axis: r for r in draft.nest.outer if r.kind is AxisKind.LOOP}
    if part is None or found.rows.axis not in loops or found.columns.axis not in loops:
        return False
    by_rows = LEFT_WORK * found.rows.size > found.columns.size  # shares of rows all pack `right`
    return any(_pack(draft, found, part, way) for way in (by_rows, not by_rows))


def _pack(draft: Draft, found: Contraction, part: tuple[UOp, int], by_rows: bool) -> bool:
    """Sums of a share in scratch, a part of `right` at a time, and blocks of `left` for it."""
    before, (axis, amount) = draft.nest, part
    outer, blocks = _arrange(draft, found, by_rows)
    if not outer or not draft.attempt(Opt(OptOps.PARTIAL, axis.axis, (outer[-1], amount))):
        draft.nest = before
        return False
    (sums,) = draft.blocks(Ops.STAGE)
    _, first, *_ = [r for r in sums.bound if r.kind is AxisKind.LOOP]
    draft.attempt(Opt(OptOps.STAGE, axis.axis, found.right.src[0].arg.slot))
    place = first if blocks else axis
    draft.attempt(Opt(OptOps.STAGE, place.axis, found.left.src[0].arg.slot))
    return True


def _arrange(draft: Draft, found: Contraction, by_rows: bool) -> tuple[list[int], list[int]]:
    """Cut the loops and put them in order: those over shares, and those over blocks of rows."""
    must_divide, room = draft.nest.rewrites, _room_for_sums(draft, found.reduce)
    sizes = {r.axis: r.size for r in draft.nest.outer if r.kind is AxisKind.LOOP}
    row, column = found.rows.axis, found.columns.axis
    others = [axis for axis in sizes if axis not in (row, column)]
    tiles = _tiles_of_block(draft, found, sizes[row])
    if by_rows:
        most = max(1, room // sizes[column] // tiles) * tiles
        height = _share(draft, sizes[row], most, [sizes[axis] for axis in others])
        shares, row = _cut(draft, row, height)
        most = max(1, min(sizes[column], room // _whole_blocks(height, tiles)))
        panels, column = _cut(draft, column, even_blocks(sizes[column], most, must_divide, PACKING))
        outer = shares + panels
    else:
        height = sizes[row]
        most = max(1, room // _whole_blocks(height, tiles))
        width = _share(draft, sizes[column], most, [sizes[axis] for axis in others])
        shares, column = _cut(draft, column, width)
        outer = shares
    block = even_blocks(height, min(height, tiles), must_divide)
    blocks, row = _cut(draft, row, block)
    draft.arrange([*others, *outer, *blocks, column, row])
    divide_tiles(draft, [*others, *shares])
    return outer if shares else [], blocks


def _cut(draft: Draft, axis: int, amount: int) -> tuple[list[int], int]:
    """The loop over blocks of so many, if there are several, and the loop inside of a block."""
    number = next_number(draft.nest)
    sizes = {r.axis: r.size for r in draft.nest.outer}
    if 1 < amount < sizes[axis] and draft.attempt(Opt(OptOps.TILE, axis, amount)):
        return [axis], number
    return [], axis


def _share(draft: Draft, size: int, most: int, others: list[int]) -> int:
    """How many tiles of an axis are done at a time, by one core if it cannot have another axis."""
    cores, must_divide = draft.target.cores, draft.nest.rewrites
    if any(is_even(other, cores) for other in others):
        return even_blocks(size, min(most, -(-size // 2)), must_divide, PACKING)
    most = min(most, -(-size // cores))  # every share more packs the other operand once more
    return shared_blocks(size, most, cores, must_divide, PACKING)


def _tiles_of_block(draft: Draft, found: Contraction, tiles: int) -> int:
    """Of how many tiles of rows a part of `left` stays in the second cache."""
    rows = -(-found.rows.size // tiles)
    part, whole = LEFT_ROOM
    room = draft.target.l2_bytes * part // whole
    return max(1, room // (rows * PART * found.reduce.dtype.itemsize))


def _whole_blocks(rows: int, tiles: int) -> int:
    """So many rows of tiles, or more: the last block of them overlaps the one before."""
    return -(-rows // tiles) * tiles


def _room_for_sums(draft: Draft, reduce: UOp) -> int:
    """How many tiles of sums fit scratch."""
    tile = prod(r.size for r in draft.nest.outer if r.kind is AxisKind.UPCAST)
    return MOST_BYTES // (tile * reduce.dtype.itemsize)


def part_of(reduce: UOp) -> tuple[UOp, int] | None:
    """How much of which axis to sum at a time, if all at once is too much for the nearest cache."""
    first = reduce.bound[0]
    rest = prod(r.size for r in reduce.bound[1:])
    if first.size * rest < SHORT or not first.src[0].is_const:
        return None
    amounts = [n for n in range(1, min(first.size, PART // rest + 1)) if first.size % n == 0]
    return (first, amounts[-1]) if amounts and amounts[-1] * rest >= PART // 4 else None
