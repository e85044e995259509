"""Convolution -> its register tile: its axes, and whether lanes are pixels or channels."""

from __future__ import annotations

from itertools import product
from math import inf, prod

from glassgrad.base.fast_dataclasses import frozen, replace
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Target
from glassgrad.ir.strides import stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.moves.skip_zeros import fraction_unmasked
from glassgrad.loops.strategies.convolution_order import WindowAxes, find_window_axes
from glassgrad.loops.strategies.flatten_spatial import flatten_spatial_axes
from glassgrad.loops.strategies.shared.cores import is_balanced
from glassgrad.loops.strategies.shared.recipe_builder import RecipeBuilder
from glassgrad.loops.strategies.shared.register_tile import (
    MAX_TILE_ROWS,
    Tile,
    lanes_along,
    tiles,
    whole_row_tiles,
)

UNALIGNED_COST = 1.15  # relative time of image vectors that cross cache lines
GATHER_COST = 2.5  # relative time of gathering image lanes
UNBALANCED_COST = 2  # relative time without enough panels for all cores
SCATTER_COST = 24  # reduction steps that cost as much as storing a tile with strided lanes


@frozen
class Convolution:
    """A convolution with a choice of tile axes and lanes."""

    reduce: UOp
    image: UOp
    weights: UOp
    rows: UOp
    columns: UOp
    lanes: int
    tile: Tile
    cost: float = inf  # time per product, relative to a perfect tile

    @property
    def has_channel_lanes(self) -> bool:
        return self.columns in self.weights.ranges

    @property
    def is_copied(self) -> bool:
        """True if the image has padding to materialize or elements to convert."""
        return self.image.gate is not None or self.image.dtype is not self.reduce.dtype

    @property
    def panels(self) -> int:
        return -(-self.columns.size // (self.tile.vectors * self.lanes))

    @property
    def channels(self) -> UOp:
        return self.columns if self.has_channel_lanes else self.rows


def best_tiling(builder: RecipeBuilder, only: int | None = None) -> Convolution | None:
    """The best tile with lanes along the image or along channels; only for pixel axis `only`, if
    given.
    """
    reduces, stores = builder.binders(Ops.REDUCE), builder.binders(Ops.STORE)
    if len(reduces) != 1 or not stores or reduces[0].arg is not Ops.ADD:
        return None
    (reduce,) = reduces
    loads = builder.loads(reduce)
    outer = [r for r in builder.nest.outer if r.kind is AxisKind.LOOP]
    found: list[Convolution] = []
    for image, weights in (loads, loads[::-1]) if len(loads) == 2 else ():
        window_axes = _window_axes(image, reduce)
        pixels = [r for r in outer if r in image.ranges and r not in weights.ranges]
        if window_axes.isdisjoint(pixels):
            continue
        if k_block_axis(builder.target, reduce) is None:  # tiles of other axes need more windows
            pixels = [r for r in pixels if r in window_axes and only in (None, r.axis)]
        channels = [r for r in outer if r in weights.ranges and r not in image.ranges]
        for pixel, channel in product(pixels, channels):
            for rows, columns in ((pixel, channel), (channel, pixel)):
                lanes = lanes_along(builder, reduce, columns)
                whole = [] if rows is channel else whole_row_tiles(builder, rows, columns, lanes)
                for tile in (*tiles(builder, rows, columns, lanes), *whole):
                    candidate = Convolution(reduce, image, weights, rows, columns, lanes, tile)
                    found.append(replace(candidate, cost=_cost(candidate, stores, builder.target)))
    best = min(found, key=lambda candidate: candidate.cost, default=None)
    return best if best is not None and best.cost < inf else None


def with_flat_pixels(builder: RecipeBuilder, found: Convolution) -> Convolution:
    """The convolution with image rows and columns flattened into one axis, if a tile fits that
    better.
    """
    if k_block_axis(builder.target, found.reduce) is not None:
        return found
    other = RecipeBuilder(builder.nest, builder.target)
    window_axes, size = _window_axes(found.image, found.reduce), found.reduce.dtype.itemsize
    number = flatten_spatial_axes(other, found.image, window_axes, size)
    flat = None if number is None else best_tiling(other, number)
    if flat is None or not flat.has_channel_lanes or flat.cost >= found.cost:
        return found
    builder.nest = other.nest
    return flat


def _window_axes(image: UOp, reduce: UOp) -> set[UOp]:
    """Output axes that share an image index with reduction axes."""
    reduced = set(reduce.bound)
    mixed = [i.ranges for i in image.indices if not reduced.isdisjoint(i.ranges)]
    return set[UOp]().union(*mixed) - reduced


def k_block_axis(target: Target, reduce: UOp) -> UOp | None:
    """The reduction axis to K-block, if what a tile reads exceeds L2."""
    width = target.vector_bytes * 2
    first, depth = reduce.bound[0], prod(r.size for r in reduce.bound)
    return first if depth * width > target.l2_bytes * 3 // 4 and len(reduce.bound) > 1 else None


def _cost(found: Convolution, stores: list[UOp], target: Target) -> float:
    """Time per product, relative to a perfect tile."""
    depth, size = prod(r.size for r in found.reduce.bound), found.reduce.dtype.itemsize
    is_k_blocked = k_block_axis(target, found.reduce) is not None
    if is_k_blocked and not found.has_channel_lanes:
        return inf
    cost = found.tile.cost * target.vector_bytes / (found.lanes * size)
    if found.has_channel_lanes and found.tile.rows == found.rows.size:
        axes = find_window_axes(found.reduce, found.image)
        if axes is not None and fits_registers(found, axes, target):
            cost *= fraction_unmasked(found.image, axes.column)
        elif found.tile.rows > MAX_TILE_ROWS:
            return inf
    if is_k_blocked and not is_balanced(found.panels, target.cores):
        # cores share panels best: dividing other loops copies every K block again
        cost *= UNBALANCED_COST
    store_strides = [stride(store.src[0], found.columns) for store in stores]
    if not found.has_channel_lanes:
        if any(step != 1 for step in store_strides):
            return inf
        return cost * (UNALIGNED_COST if stride(found.image, found.columns) == 1 else GATHER_COST)
    if all(step == 1 for step in store_strides):
        return cost
    is_row = all(stride(store.src[0], found.rows) == 1 for store in stores)
    return cost + SCATTER_COST / depth * (1 if is_row else 4)


def fits_registers(found: Convolution, steps: WindowAxes, target: Target) -> bool:
    """True if all pixels that share window columns fit the registers next to the sums."""
    rows, vectors = found.tile.rows, found.tile.vectors
    return rows * vectors + (rows + steps.column.size - 1) + vectors + 1 <= target.registers
