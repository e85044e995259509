"""Strategy for convolutions and their gradients: sums of products over sliding windows.

One operand, the *image*, has indices that mix output pixels with reduction steps, so its reads
overlap. The other, the *weights*, has output channels that the image lacks. Lanes run along an
image row, or along channels, which needs no long rows and no unit stride in the image.
"""

from __future__ import annotations

from itertools import takewhile
from math import prod

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Target
from glassgrad.ir.strides import stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.moves.cache_read import elements_read, footprint_size
from glassgrad.loops.moves.pack import MAX_SCRATCH_BYTES
from glassgrad.loops.moves.skip_zeros import fraction_unmasked
from glassgrad.loops.nest import find_axis, next_axis_number
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.convolution_order import (
    coalesce_rows,
    find_window_axes,
    iterate_rows_outside,
)
from glassgrad.loops.strategies.convolution_tiling import (
    Convolution,
    best_tiling,
    fits_registers,
    k_block_axis,
    with_flat_pixels,
)
from glassgrad.loops.strategies.shared.cores import divide_tiles, is_balanced
from glassgrad.loops.strategies.shared.packing import vectorize_packing
from glassgrad.loops.strategies.shared.recipe_builder import RecipeBuilder

MAX_UNROLLED_WINDOW = 7  # elements: window axes up to this size are fully unrolled
MAX_UNROLLED_PRODUCTS = 64  # unrolled products in a loop body
MAX_UNROLLED_SCATTERED = 128  # the same where no two pixels share a pointer
K_BLOCK_STEPS = 512  # reduction steps per K block, or one image
MIN_IMAGE_REUSE = 4  # reads per copied element
COPY_COST = 4  # relative time of copying with padding, to reading
# fraction of reduction steps above which loops are not shortened to skip padding
MAX_UNMASKED = 0.98


def convolution_strategy(builder: RecipeBuilder) -> bool:
    """Shape a convolution; False, with nothing changed, if the nest is none."""
    return _shape_convolution(builder) and vectorize_packing(builder)


def _shape_convolution(builder: RecipeBuilder) -> bool:
    found = best_tiling(builder)
    if found is None:
        return False
    found = with_flat_pixels(builder, found)
    number = next_axis_number(builder.nest)
    width = found.tile.vectors * found.lanes
    if not builder.try_move(Opt(OptOps.UPCAST, found.columns.axis, width)):
        return False
    if found.has_channel_lanes:
        builder.try_move(Opt(OptOps.LANES, number, found.lanes))
    if found.tile.rows > 1:
        builder.try_move(Opt(OptOps.UPCAST, found.rows.axis, found.tile.rows))
    if k_block_axis(builder.target, found.reduce) is not None:
        _order_k_blocks(builder, found)
    elif found.has_channel_lanes and _order_channel_loops(builder, found):
        _unroll_columns(builder, found)
        return True
    elif not found.has_channel_lanes:
        _order_pixel_loops(builder, found)
    _unroll_window(builder, found)
    return True


# ---------------------------------------------------------------------- loops around the tile


def _order_channel_loops(builder: RecipeBuilder, found: Convolution) -> bool:
    """Order the loops for channel lanes; True if rows of the window are iterated outside of
    channels.

    Weights that fit the cache stay there for all images. Otherwise panels are outermost if all
    images fit, else blocks of panels with the images inside.
    """
    l2, size = builder.target.l2_bytes, found.reduce.dtype.itemsize
    loops = [r for r in builder.nest.outer if r.kind is AxisKind.LOOP]
    row_axis = [r.axis for r in loops if r.axis == found.rows.axis]
    panels = next((r for r in loops if r.axis == found.channels.axis), None)
    others = [r for r in loops if r.axis not in (found.rows.axis, found.channels.axis)]
    weight_bytes, others_axes = (
        prod(r.size for r in found.weights.ranges) * size,
        [r.axis for r in others],
    )
    order = [*others_axes, *([] if panels is None else [panels.axis]), *row_axis]
    if panels is not None and not (others_axes and weight_bytes <= l2 // 2):
        repeats = prod(r.size for r in others)
        blocks, within_block = _block_panels(builder, found, panels, weight_bytes, repeats)
        image_bytes = _image_bytes(found)
        is_copied_once = (
            image_bytes <= _max_whole_copy(builder.target)
            and panels.size * image_bytes < repeats * weight_bytes
        )
        keeps_images = image_bytes <= l2 or is_copied_once
        order = (
            [*blocks, *within_block, *others_axes]
            if keeps_images
            else [*blocks, *others_axes, *within_block]
        )
        order += row_axis
    builder.order_outer_loops(order)
    divide_tiles(builder, order)
    order = [r.axis for r in builder.nest.outer if not r.kind.is_unrolled]
    if not order:
        return False
    panel_loops = list(takewhile(lambda number: number not in (*others_axes, *row_axis), order))
    pack_axis = panel_loops[-1] if panel_loops else order[0]  # panel by panel, or all at once
    return _copy_operands(builder, found, order, pack_axis)


def _copy_operands(
    builder: RecipeBuilder, found: Convolution, order: list[int], pack_axis: int
) -> bool:
    """Pack the weights, and copy the image's footprint if it needs copying.

    True if rows are iterated outside of channels: weights are then packed in memory order, and one
    row of the footprint spans all channels. Where pixels are scattered, rows and channels are
    coalesced.
    """
    pack = Opt(OptOps.PACK, pack_axis, found.weights.src[0].arg.slot)
    number = _copy_loop(builder, found, order) if found.is_copied else None
    if number is not None and _iterate_rows(builder, found, number, pack):
        return True
    if number is not None:
        builder.try_move(Opt(OptOps.CACHE_READ, number, found.image.src[0].arg.slot))
    builder.try_move(pack)
    return False


def _iterate_rows(builder: RecipeBuilder, found: Convolution, number: int, pack: Opt) -> bool:
    """`iterate_rows_outside`, if the nest has window axes and a tile that suits them."""
    before, steps = builder.nest, find_window_axes(found.reduce, found.image)
    if steps is None or not iterate_rows_outside(builder, steps, found.image, number):
        return False
    if _has_scattered_pixels(builder):
        builder.try_move(pack)
        coalesce_rows(builder, steps, found.reduce, found.weights)
        return True
    builder.nest = before
    if not fits_registers(found, steps, builder.target):
        return False
    builder.try_move(pack)
    return iterate_rows_outside(builder, steps, found.image, number)


def _block_panels(
    builder: RecipeBuilder, found: Convolution, panels: UOp, weight_bytes: int, repeats: int
) -> tuple[list[int], list[int]]:
    """The axes of panel blocks and of the panels inside: as few blocks as scratch and core balance
    allow, unless the weights would then be read from memory too often.
    """
    l2, copy_cost = builder.target.l2_bytes, COPY_COST if found.is_copied else 1

    def traffic(count: int) -> float:
        blocks = panels.size // count
        is_kept = weight_bytes // blocks <= l2 // 2
        return blocks * _image_bytes(found) * copy_cost + (0 if is_kept else repeats * weight_bytes)

    sizes = [n for n in range(1, panels.size + 1) if panels.size % n == 0]
    counts_in_scratch = [
        n for n in sizes if weight_bytes * n <= MAX_SCRATCH_BYTES * panels.size
    ] or [1]
    balanced = [n for n in counts_in_scratch if is_balanced(panels.size // n, builder.target.cores)]
    count = min(balanced or counts_in_scratch, key=lambda n: (traffic(n), -n))
    if count == panels.size:
        return [], [panels.axis]
    number = next_axis_number(builder.nest)
    is_tiled = count > 1 and builder.try_move(Opt(OptOps.TILE, panels.axis, count))
    return [panels.axis], [number] if is_tiled else []


def _image_bytes(found: Convolution) -> float:
    """The bytes read of all images."""
    return elements_read(found.image, set()) * found.reduce.dtype.itemsize


def _order_k_blocks(builder: RecipeBuilder, found: Convolution) -> None:
    """A panel of channels outside; then K blocks; all results of the panel accumulate each block.

    With one panel, the shortest loop is outermost, as each of its iterations copies the blocks
    again.
    """
    loops = [r for r in builder.nest.outer if r.kind is AxisKind.LOOP]
    if not loops:
        return
    outermost = min(loops, key=lambda r: (r.axis != found.channels.axis, r.size)).axis
    builder.order_outer_loops([outermost, *[r.axis for r in loops if r.axis != outermost]])
    divide_tiles(builder, [outermost])
    k_axis = found.reduce.bound[0].axis
    if not builder.try_move(Opt(OptOps.K_BLOCK, k_axis, (outermost, _k_block_size(found.reduce)))):
        return
    if found.is_copied:
        builder.try_move(Opt(OptOps.CACHE_READ, k_axis, found.image.src[0].arg.slot))
    builder.try_move(Opt(OptOps.PACK, k_axis, found.weights.src[0].arg.slot))


def _k_block_size(reduce: UOp) -> int:
    """The steps of the first axis per K block: several images if they are small."""
    outermost, *inner = reduce.bound
    limit = max(1, K_BLOCK_STEPS // prod(r.size for r in inner))
    return max(n for n in range(1, min(limit, outermost.size - 1) + 1) if outermost.size % n == 0)


def _max_whole_copy(target: Target) -> int:
    """The bytes of images that may be copied at once and stay in L3 for all panels."""
    return min(MAX_SCRATCH_BYTES, target.l3_bytes // (2 * target.cores))


def _copy_loop(builder: RecipeBuilder, found: Convolution, order: list[int]) -> int | None:
    """The outermost loop whose footprint fits L2. If panels repeat around it, the whole image is
    copied once, if it is small enough for L3.
    """
    target, size = builder.target, found.reduce.dtype.itemsize
    slot = found.image.src[0].arg.slot

    def footprint_bytes(number: int) -> float:
        return footprint_size(builder.nest, find_axis(builder.nest, number), slot) * size

    axis = next((number for number in order if footprint_bytes(number) <= target.l2_bytes), None)
    repeating = order[: order.index(axis)] if axis is not None else []
    repeats = prod(
        r.size for r in builder.nest.outer if r.axis in repeating and r not in found.image.ranges
    )
    if repeats > target.cores and footprint_bytes(order[0]) <= _max_whole_copy(target):
        return order[0]
    return axis


def _order_pixel_loops(builder: RecipeBuilder, found: Convolution) -> None:
    """Pixel rows and columns innermost; around them the image's footprint, copied once for all
    rows.
    """
    loops = [r for r in builder.nest.outer if r.kind is AxisKind.LOOP]
    tile_axes = {found.rows.axis, found.columns.axis}
    enclosing = [r.axis for r in loops if r.axis not in tile_axes]
    if not enclosing:
        divide_tiles(builder, [r.axis for r in loops])
        return
    pixel_axes = sorted(
        [r.axis for r in loops if r.axis in tile_axes], key=found.columns.axis.__eq__
    )
    builder.order_outer_loops([*enclosing, *pixel_axes])
    divide_tiles(builder, [*enclosing, *pixel_axes])
    if found.rows.size >= MIN_IMAGE_REUSE:
        builder.try_move(Opt(OptOps.CACHE_READ, enclosing[-1], found.image.src[0].arg.slot))
    weight_bytes = prod(r.size for r in found.weights.ranges) * found.reduce.dtype.itemsize
    pack_axis = enclosing[0] if weight_bytes <= builder.target.l2_bytes else found.rows.axis
    builder.try_move(Opt(OptOps.PACK, pack_axis, found.weights.src[0].arg.slot))


def _unroll_window(builder: RecipeBuilder, found: Convolution) -> None:
    """Unroll short window axes, unless their unrolled steps read the same pixels: these stay in
    registers, and there would be too many.
    """
    products = found.tile.rows * found.tile.vectors
    if found.has_channel_lanes and _has_scattered_pixels(builder):
        (reduce,) = builder.binders(Ops.REDUCE)
        unrolled, max_products = [*reduce.bound], MAX_UNROLLED_SCATTERED
    else:
        tile = {found.rows} if found.has_channel_lanes else set[UOp]()
        overlapping = [i.ranges for i in found.image.indices if not tile.isdisjoint(i.ranges)]
        independent = [
            r for r in found.reduce.bound if not any(r in ranges for ranges in overlapping)
        ]
        unrolled, max_products = independent[-1:], MAX_UNROLLED_PRODUCTS
    for axis in reversed(unrolled):
        products *= axis.size
        if axis.size > MAX_UNROLLED_WINDOW or products > max_products:
            return
        builder.try_move(Opt(OptOps.UNROLL, axis.axis, axis.size))


def _unroll_columns(builder: RecipeBuilder, found: Convolution) -> None:
    """Unroll the window's columns, and skip steps that read only padding."""
    (reduce,) = builder.binders(Ops.REDUCE)
    column = reduce.bound[-1]
    products = found.tile.rows * found.tile.vectors * column.size
    axes = find_window_axes(found.reduce, found.image)
    if axes is not None and fraction_unmasked(found.image, axes.row) < MAX_UNMASKED:
        builder.try_move(Opt(OptOps.SKIP_ZEROS, axes.row.axis))
    if column.size <= MAX_UNROLLED_WINDOW and products <= MAX_UNROLLED_SCATTERED:
        builder.try_move(Opt(OptOps.SKIP_ZEROS, column.axis))
        builder.try_move(Opt(OptOps.UNROLL, column.axis, column.size))


def _has_scattered_pixels(builder: RecipeBuilder) -> bool:
    """True if the pixels of a tile have no common stride, so that each needs a pointer."""
    loads = [index for binder in builder.binders(Ops.REDUCE) for index in builder.loads(binder)]
    tiled = {r for index in loads for r in index.ranges if r.kind is AxisKind.UPCAST}
    return any(stride(index, r) is None for index in loads for r in tiled)
