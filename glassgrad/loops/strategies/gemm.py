"""Strategy for contractions: a register tile of sums, and operands packed for the cache.

Every element is used many times, so a tile of sums stays in registers, and operands are copied into
the order in which the inner loops read them.
"""

from __future__ import annotations

from glassgrad.ir.ops import AxisKind
from glassgrad.ir.strides import stride
from glassgrad.loops.moves.pack import MAX_SCRATCH_BYTES
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.dot_products import dot_product_strategy
from glassgrad.loops.strategies.packed_gemm import KC, k_block_of, packed_gemm
from glassgrad.loops.strategies.shared.contraction_pattern import Contraction, find_contraction
from glassgrad.loops.strategies.shared.cores import balanced_block_size, divide_nested, divide_tiles
from glassgrad.loops.strategies.shared.packing import vectorize_packing
from glassgrad.loops.strategies.shared.recipe_builder import RecipeBuilder
from glassgrad.loops.strategies.shared.register_tile import choose_tile, lanes_along

MIN_COLUMNS = 8  # with fewer columns, lanes along the reduction may be better
MAX_UNPACKED_ROWS = 32  # rows: for fewer, packing an operand costs more than it saves
PADDED_TILE_ROWS = 6  # tile rows, where the rows are padded because no tile divides them
DOT_ITEM_BYTES = 2  # bytes of a packed dot operand, at most
# rows and columns, and reduction steps, for which packing both operands pays
LARGE_SIZE, LARGE_DEPTH = 1024, 1536
LEFT_READ_COST = 4  # cost of reading `left` once for a block, in panel columns
MIN_ROW_REUSE = 4  # reads per packed element
MIN_LEFT_REUSE = 1024  # products per packed element of `left`


def gemm_strategy(builder: RecipeBuilder) -> bool:
    """Shape a contraction; False, with nothing changed, if the nest is none."""
    return _shape_contraction(builder) and vectorize_packing(builder)


def _shape_contraction(builder: RecipeBuilder) -> bool:
    found = find_contraction(builder)
    columns = 0 if found is None else found.columns.size
    if found is not None and _is_skinny(found):
        columns = 0  # each row reads `right` once: in memory order, not packed
    if columns < MIN_COLUMNS and dot_product_strategy(builder, columns):
        divide_tiles(builder, [r.axis for r in builder.nest.outer])
        return True
    if found is None:
        return False
    lanes = lanes_along(builder, found.reduce, found.columns)
    has_dot_instruction = found.has_dot_instruction(builder.target)
    # a dot instruction without accumulation needs one for its products
    reserved = 2 if has_dot_instruction else 1
    _, rows, vectors = choose_tile(builder, found.rows, found.columns, lanes, reserved)
    if rows == 1 and builder.try_move(Opt(OptOps.PADTO, found.rows.axis, PADDED_TILE_ROWS)):
        return _shape_contraction(builder)  # no tile divides the rows
    needs_padded_k = not has_dot_instruction and _needs_padded_k(found, vectors * lanes)
    if (
        needs_padded_k
        and found.rows.size >= MIN_ROW_REUSE * rows
        and _pad_reduction(builder, found)
    ):
        return True
    if not builder.try_move(Opt(OptOps.UPCAST, found.columns.axis, vectors * lanes)):
        return False
    if rows > 1:
        builder.try_move(Opt(OptOps.UPCAST, found.rows.axis, rows))
    _order_loops(builder, found, vectors * lanes)
    return True


def _is_skinny(found: Contraction) -> bool:
    return found.rows.size <= MAX_UNPACKED_ROWS and stride(found.right, found.columns) != 1


def _needs_padded_k(found: Contraction, width: int) -> bool:
    """True if a panel exceeds scratch and no K block divides the reduction."""
    return _panel_bytes(found, width) > MAX_SCRATCH_BYTES and k_block_of(found.reduce) is None


def _pad_reduction(builder: RecipeBuilder, found: Contraction) -> bool:
    """Shape a contraction whose reduction is padded to whole K blocks.

    False, with nothing changed, if it is not K-blocked even so.
    """
    before, first = builder.nest, found.reduce.bound[0]
    steps = KC // (found.depth // first.size)
    if steps > 1 and builder.try_move(Opt(OptOps.PADTO, first.axis, steps)):
        _shape_contraction(builder)
        if any(opt.op is OptOps.K_BLOCK for opt in builder.nest.recipe):
            return True
    builder.nest = before
    return False


def _panel_bytes(found: Contraction, width: int) -> int:
    return found.depth * width * found.reduce.dtype.itemsize


def _order_loops(builder: RecipeBuilder, found: Contraction, width: int) -> None:
    """Blocks of columns whose panels fit the cache; rows inside; then the columns of a block."""
    target, has_dot_instruction = builder.target, found.has_dot_instruction(builder.target)
    itemsize = DOT_ITEM_BYTES if has_dot_instruction else found.reduce.dtype.itemsize
    outer = {r.axis: r for r in builder.nest.outer}
    columns, rows = outer.get(found.columns.axis), outer.get(found.rows.axis)
    own = (found.columns.axis, found.rows.axis)
    other_loops = [axis for axis, r in outer.items() if r.kind is AxisKind.LOOP and axis not in own]
    if columns is None or rows is None or columns.kind is not AxisKind.LOOP:
        divide_tiles(builder, list(outer))
        return
    packs_left = any(stride(found.left, r) not in (0, 1) for r in found.reduce.bound)
    is_large = min(found.rows.size, found.columns.size) >= LARGE_SIZE and found.depth >= LARGE_DEPTH
    is_large |= rows.size >= MIN_ROW_REUSE and _panel_bytes(found, width) > MAX_SCRATCH_BYTES
    if (packs_left or is_large) and not has_dot_instruction and packed_gemm(builder, found):
        return
    cache_bytes = target.l2_bytes * 4 if packs_left else target.l2_bytes // 2
    panels = max(1, cache_bytes // (found.depth * width * itemsize))
    panels = min(panels, -(-columns.size // max(2, target.cores)))
    cores = 1 if other_loops else target.cores
    begin = LEFT_READ_COST / width
    panels = balanced_block_size(columns.size, panels, cores, builder.nest.may_alias, begin)
    is_tiled = 1 < panels < columns.size
    if is_tiled:
        builder.try_move(Opt(OptOps.TILE, columns.axis, panels))
    builder.try_move(Opt(OptOps.SWAP, rows.axis, columns.axis))
    row_axis = None if other_loops else divide_nested(builder, columns.axis, rows.axis)
    if row_axis is None:
        row_axis = rows.axis
        divide_tiles(builder, [*other_loops, columns.axis, row_axis])
    divided_axes = [r.axis for r in builder.nest.outer if r.kind is AxisKind.CORE]
    # else every row tile would pack it again
    if rows.size >= MIN_ROW_REUSE and row_axis not in divided_axes:
        if has_dot_instruction:
            builder.try_move(
                Opt(OptOps.DOT, found.reduce.bound[-1].axis, found.right.src[0].arg.slot)
            )
        builder.try_move(Opt(OptOps.PACK, columns.axis, found.right.src[0].arg.slot))
    column_tiles = panels if is_tiled else 1  # column tiles that read the same rows of `left`
    if packs_left and column_tiles > 2 and column_tiles * found.depth > MIN_LEFT_REUSE:
        builder.try_move(Opt(OptOps.PACK, row_axis, found.left.src[0].arg.slot))
    elif found.left.dtype is not found.reduce.dtype:  # convert once, not in every product
        builder.try_move(Opt(OptOps.CACHE_READ, row_axis, found.left.src[0].arg.slot))
