"""Recipes for contractions: a register tile of the result, one operand packed for the cache.

Every element is used many times, so it pays to keep a tile of sums in registers and to copy what
the inner loops read into the order in which they read it.
"""

from __future__ import annotations

from glassgrad.ir.ops import AxisKind
from glassgrad.ir.strides import stride
from glassgrad.loops.analysis.contraction_pattern import Contraction, find_contraction
from glassgrad.loops.moves.pack import MOST_BYTES
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.convolution import windows_recipe
from glassgrad.loops.strategies.cores import divide_both, divide_tiles, shared_blocks
from glassgrad.loops.strategies.dot_products import dot_recipe
from glassgrad.loops.strategies.packed_gemm import PART, packed_recipe, part_of
from glassgrad.loops.strategies.recipe_builder import Draft
from glassgrad.loops.strategies.register_tile import choose_tile, lanes_along

MOST_LANES = 8  # with fewer columns, a sum may lie better in memory
SKINNY = 32  # rows: packing an operand for so few takes longer than it saves
PADDED_ROWS = 6  # a tile's, where storing an element twice would be wrong
PACKED_BYTES = 2  # of an operand of dot products, at most
LARGE, DEEP = 1024, 1536  # rows and columns, and products, for which it pays to pack both operands
LEFT_READ = 4  # columns of a panel that take as long as to read `left` for a block of them
ENOUGH_REUSE = 4  # times that a packed element should be read
ENOUGH_STEPS = 1024  # of sums that read a packed row


def contraction_recipe(draft: Draft) -> bool:
    """Shape a contraction; False, and nothing done, if the nest is none."""
    if windows_recipe(draft):
        return True
    found = find_contraction(draft)
    columns = 0 if found is None else found.columns.size
    if found is not None and _is_skinny(found):
        columns = 0  # a row of the result reads all of `right`: as it lies, not packed
    if columns < MOST_LANES and dot_recipe(draft, columns):
        divide_tiles(draft, [r.axis for r in draft.nest.outer])
        return True
    if found is None:
        return False
    lanes = lanes_along(draft, found.reduce, found.columns)
    is_dotted = found.is_dotted(draft.target)
    others = 2 if is_dotted else 1  # one for products that are yet to be added
    _, rows, vectors = choose_tile(draft, found.rows, found.columns, lanes, others)
    if rows == 1 and draft.attempt(Opt(OptOps.PADTO, found.rows.axis, PADDED_ROWS)):
        return contraction_recipe(draft)  # no number of rows divides them
    is_endless = not is_dotted and _is_endless(found, vectors * lanes)
    if is_endless and found.rows.size >= ENOUGH_REUSE * rows and _pad_sum(draft, found):
        return True
    if not draft.attempt(Opt(OptOps.UPCAST, found.columns.axis, vectors * lanes)):
        return False
    if rows > 1:
        draft.attempt(Opt(OptOps.UPCAST, found.rows.axis, rows))
    _block(draft, found, vectors * lanes)
    return True


def _is_skinny(found: Contraction) -> bool:
    return found.rows.size <= SKINNY and stride(found.right, found.columns) != 1


def _is_endless(found: Contraction, width: int) -> bool:
    """Is a panel too long for scratch, with no parts that divide it?"""
    return _panel_bytes(found, width) > MOST_BYTES and part_of(found.reduce) is None


def _pad_sum(draft: Draft, found: Contraction) -> bool:
    """Shape a sum that is made longer, so that parts divide it; False, and nothing done, if it is
    not packed in parts even so.
    """
    before, first = draft.nest, found.reduce.bound[0]
    steps = PART // (found.depth // first.size)
    if steps > 1 and draft.attempt(Opt(OptOps.PADTO, first.axis, steps)):
        contraction_recipe(draft)
        if any(opt.op is OptOps.PARTIAL for opt in draft.nest.recipe):
            return True
    draft.nest = before
    return False


def _panel_bytes(found: Contraction, width: int) -> int:
    return found.depth * width * found.reduce.dtype.itemsize


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
    is_large = min(found.rows.size, found.columns.size) >= LARGE and found.depth >= DEEP
    is_large |= rows.size >= ENOUGH_REUSE and _panel_bytes(found, width) > MOST_BYTES
    if (packs_left or is_large) and not is_dotted and packed_recipe(draft, found):
        return
    room = target.l2_bytes * 4 if packs_left else target.l2_bytes // 2
    panels = max(1, room // (found.depth * width * size))
    panels = min(panels, -(-columns.size // max(2, target.cores)))
    cores = 1 if others else target.cores
    begin = LEFT_READ / width
    panels = shared_blocks(columns.size, panels, cores, draft.nest.rewrites, begin)
    is_cut = 1 < panels < columns.size
    if is_cut:
        draft.attempt(Opt(OptOps.TILE, columns.axis, panels))
    draft.attempt(Opt(OptOps.SWAP, rows.axis, columns.axis))
    row = None if others else divide_both(draft, columns.axis, rows.axis)
    if row is None:
        row = rows.axis
        divide_tiles(draft, [*others, columns.axis, row])
    divided = [r.axis for r in draft.nest.outer if r.kind is AxisKind.CORE]
    if rows.size >= ENOUGH_REUSE and row not in divided:  # else for every tile of rows again
        if is_dotted:
            draft.attempt(Opt(OptOps.DOT, found.reduce.bound[-1].axis, found.right.src[0].arg.slot))
        draft.attempt(Opt(OptOps.STAGE, columns.axis, found.right.src[0].arg.slot))
    times = panels if is_cut else 1  # that tiles of columns read the same of `left`
    if packs_left and times > 2 and times * found.depth > ENOUGH_STEPS:
        draft.attempt(Opt(OptOps.STAGE, row, found.left.src[0].arg.slot))
    elif found.left.dtype is not found.reduce.dtype:  # converted once, not in every product
        draft.attempt(Opt(OptOps.WINDOW, row, found.left.src[0].arg.slot))
