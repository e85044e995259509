"""Recipes for contractions: a register tile of the result, one operand packed for the cache.

A contraction is a sum of products in which each operand lacks an axis of the result that the
other has. Every element is used many times, so it pays to keep a tile of sums in registers and to
copy what the inner loops read into the order in which they read it.
"""

from __future__ import annotations

from math import prod

from glassgrad.base.frozen import frozen
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Target
from glassgrad.ir.strides import stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.cores import divide_tiles, is_even
from glassgrad.loops.dots import dot_recipe
from glassgrad.loops.draft import Draft
from glassgrad.loops.narrow import dot_form
from glassgrad.loops.nest import next_number
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.staging import MOST_BYTES
from glassgrad.loops.tile import choose_tile, lanes_along
from glassgrad.loops.windows import windows_recipe

FEW_COLUMNS = 4  # half a vector; with fewer, lanes along the sum are better
MOST_LANES = 8  # with fewer columns, a sum may lie better in memory
SKINNY = 32  # rows: packing an operand for so few takes longer than it saves
PADDED_ROWS = 6  # a tile's, where storing an element twice would be wrong
PART = 512  # steps of a sum, so that a panel of each operand fits the nearest cache
ROW_TILES = 16  # in a block of rows, which fits the second cache
PACKED_BYTES = 2  # of an operand of dot products, at most
ENOUGH_REUSE = 4  # times that a packed element should be read


@frozen
class Contraction:
    """rows: the result's axis that only `left` has; columns: the unit-stride axis of `right`."""

    reduce: UOp
    rows: UOp
    columns: UOp
    left: UOp
    right: UOp

    def is_dotted(self, target: Target) -> bool:
        """Has the machine an instruction for several of these products at once?"""
        return dot_form(self.reduce, target) is not None

    @property
    def depth(self) -> int:
        return prod(r.size for r in self.reduce.bound)


def contraction_recipe(draft: Draft) -> bool:
    """Shape a contraction; False, and nothing done, if the nest is none."""
    if windows_recipe(draft):
        return True
    found = _find(draft)
    columns = 0 if found is None else found.columns.size
    if found is not None and _is_skinny(found):
        columns = 0  # a row of the result reads all of `right`: as it lies, not packed
    if columns < MOST_LANES and dot_recipe(draft, columns):
        divide_tiles(draft, [r.axis for r in draft.nest.outer])
        return True
    if found is None:
        return False
    lanes = lanes_along(draft, found.reduce, found.columns)
    others = 2 if found.is_dotted(draft.target) else 1  # one for products that are yet to be added
    _, rows, vectors = choose_tile(draft, found.rows, found.columns, lanes, others)
    if rows == 1 and draft.attempt(Opt(OptOps.PADTO, found.rows.axis, PADDED_ROWS)):
        return contraction_recipe(draft)  # no number of rows divides them
    if not draft.attempt(Opt(OptOps.UPCAST, found.columns.axis, vectors * lanes)):
        return False
    if rows > 1:
        draft.attempt(Opt(OptOps.UPCAST, found.rows.axis, rows))
    _block(draft, found, vectors * lanes)
    return True


def _is_skinny(found: Contraction) -> bool:
    return found.rows.size <= SKINNY and stride(found.right, found.columns) != 1


def _find(draft: Draft) -> Contraction | None:
    reduces, stores = draft.blocks(Ops.REDUCE), draft.blocks(Ops.STORE)
    if len(reduces) != 1 or not stores:
        return None
    (reduce,) = reduces
    loads = draft.loads(reduce)
    if reduce.arg is not Ops.ADD or len(loads) != 2:
        return None
    outer = [r for r in draft.nest.outer if r.kind is AxisKind.LOOP]
    columns = [r for r in outer if all(stride(s.src[0], r) == 1 for s in stores)]
    for left, right in (loads, loads[::-1]):
        lane = [r for r in columns if r in right.ranges and r not in left.ranges]
        rows = [r for r in outer if r in left.ranges and r not in right.ranges]
        if lane and rows and lane[0].size >= FEW_COLUMNS:
            return Contraction(reduce, max(rows, key=lambda r: r.size), lane[0], left, right)
    return None


def _block(draft: Draft, found: Contraction, width: int) -> None:
    """Blocks of columns whose panels fit the cache; rows inside; then the columns of a block."""
    target, is_dotted = draft.target, found.is_dotted(draft.target)
    size = PACKED_BYTES if is_dotted else found.reduce.dtype.itemsize
    outer = {r.axis: r for r in draft.nest.outer}
    columns, rows = outer.get(found.columns.axis), outer.get(found.rows.axis)
    own = (found.columns.axis, found.rows.axis)
    others = [axis for axis, r in outer.items() if r.kind is AxisKind.LOOP and axis not in own]
    if columns is None or rows is None or columns.kind is not AxisKind.LOOP:
        divide_tiles(draft, list(outer))
        return
    packs_left = any(stride(found.left, r) not in (0, 1) for r in found.reduce.bound)
    if packs_left and not is_dotted and _block_parts(draft, found):
        return
    room = target.l2_bytes * 4 if packs_left else target.l2_bytes // 2
    panels = max(1, room // (found.depth * width * size))
    panels = min(panels, -(-columns.size // max(2, target.cores)))
    panels = _even(columns.size, panels, draft.nest.rewrites)
    if not others:
        panels = _shared(columns.size, panels, target.cores, draft.nest.rewrites)
    if 1 < panels < columns.size:
        draft.attempt(Opt(OptOps.TILE, columns.axis, panels))
    draft.attempt(Opt(OptOps.SWAP, rows.axis, columns.axis))
    divide_tiles(draft, [*others, columns.axis, rows.axis])
    if rows.size >= ENOUGH_REUSE:
        if is_dotted:
            draft.attempt(Opt(OptOps.DOT, found.reduce.bound[-1].axis, found.right.src[0].arg.slot))
        draft.attempt(Opt(OptOps.STAGE, columns.axis, found.right.src[0].arg.slot))
    if packs_left:
        draft.attempt(Opt(OptOps.STAGE, rows.axis, found.left.src[0].arg.slot))
    elif found.left.dtype is not found.reduce.dtype:  # converted once, not in every product
        draft.attempt(Opt(OptOps.WINDOW, rows.axis, found.left.src[0].arg.slot))


def _block_parts(draft: Draft, found: Contraction) -> bool:
    """Both operands packed, a part of the sum at a time: nothing is packed twice for a core.

    Blocks of columns; parts; blocks of rows; columns; rows.
    """
    part = _part(found.reduce)
    loops = {r.axis: r for r in draft.nest.outer if r.kind is AxisKind.LOOP}
    columns, rows = loops.get(found.columns.axis), loops.get(found.rows.axis)
    if part is None or columns is None or rows is None:
        return False
    others = [axis for axis in loops if axis not in (columns.axis, rows.axis)]
    must_divide, blocks = draft.nest.rewrites, 2 if others else 2 * draft.target.cores
    tiles = _even(rows.size, min(rows.size, ROW_TILES), must_divide)
    most = min(-(-columns.size // blocks), _room_for_sums(draft, found, rows.size, tiles))
    panels = _even(columns.size, max(1, most), must_divide)
    if not others:
        panels = _shared(columns.size, panels, draft.target.cores, must_divide)
    before, number = draft.nest, next_number(draft.nest)
    if panels < 2 or not draft.attempt(Opt(OptOps.TILE, columns.axis, panels)):
        return False
    order = [*others, columns.axis, number, rows.axis]
    if 1 < tiles < rows.size and draft.attempt(Opt(OptOps.TILE, rows.axis, tiles)):
        order = [*others, columns.axis, rows.axis, number, number + 1]
    draft.arrange(order)
    divide_tiles(draft, [*others, columns.axis])
    axis, amount = part
    if not draft.attempt(Opt(OptOps.PARTIAL, axis.axis, (columns.axis, amount))):
        draft.nest = before
        return False
    (sums,) = draft.blocks(Ops.STAGE)
    _, first, *_ = [r for r in sums.bound if r.kind is AxisKind.LOOP]
    place = axis if tiles == rows.size else first  # a block of rows, if there are several
    draft.attempt(Opt(OptOps.STAGE, axis.axis, found.right.src[0].arg.slot))
    draft.attempt(Opt(OptOps.STAGE, place.axis, found.left.src[0].arg.slot))
    return True


def _room_for_sums(draft: Draft, found: Contraction, rows: int, tiles: int) -> int:
    """How many panels of sums, of whole blocks of rows, fit scratch."""
    tile = prod(r.size for r in draft.nest.outer if r.kind is AxisKind.UPCAST)
    panel = -(-rows // tiles) * tiles * tile * found.reduce.dtype.itemsize
    return MOST_BYTES // panel


def _part(reduce: UOp) -> tuple[UOp, int] | None:
    """How much of which axis to sum at a time, if all at once is too much for the nearest cache."""
    first = reduce.bound[0]
    rest = prod(r.size for r in reduce.bound[1:])
    if first.size * rest < 2 * PART or not first.src[0].is_const:
        return None
    amounts = [n for n in range(1, first.size) if first.size % n == 0 and n * rest <= PART]
    return (first, amounts[-1]) if amounts and amounts[-1] * rest >= PART // 4 else None


def _even(size: int, most: int, must_divide: bool) -> int:
    """How many of an axis to take at a time: blocks of one size, if nearly as large as allowed."""
    dividing = max(n for n in range(1, most + 1) if size % n == 0)
    if must_divide or 4 * dividing >= 3 * most:
        return dividing
    return -(-size // -(-size // most))  # as many blocks, of which the last one overlaps least


def _shared(size: int, most: int, cores: int, must_divide: bool) -> int:
    """The same, or fewer at a time: as many blocks for every core; the same if there are none."""
    count = -(-size // most)
    if is_even(count, cores):
        return most
    if not must_divide:
        return -(-size // (-(-count // cores) * cores))
    fitting = [n for n in range(1, most + 1) if size % n == 0 and is_even(size // n, cores)]
    return fitting[-1] if fitting and 3 * fitting[-1] >= most else most
