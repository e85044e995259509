"""Flatten the rows and columns of an image into one spatial axis, which tiles of any size fit.

A tile of six pixels fits rows of 14 badly, but 196 pixels well. Where an image exceeds the cache,
rows are blocked first.
"""

from __future__ import annotations

from math import isinf

from glassgrad.ir.ops import AxisKind
from glassgrad.ir.uop import UOp
from glassgrad.loops.moves.cache_read import elements_read
from glassgrad.loops.nest import next_axis_number
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.shared.recipe_builder import RecipeBuilder


def flatten_spatial_axes(
    builder: RecipeBuilder, image: UOp, window_axes: set[UOp], itemsize: int
) -> int | None:
    """for y: for x  ->  for blocks of rows: for pixels of a block; the axis number of the last.

    `itemsize` is that of the cached copy of the image.
    """
    loops = [r for r in builder.nest.outer if r in window_axes and r.kind is AxisKind.LOOP]
    if len(loops) < 2:
        return None
    rows, columns = loops[-2:]
    limit = builder.target.l2_bytes // itemsize
    amount, number = _block_rows(builder, image, rows, columns, limit), rows.axis
    if amount < rows.size:
        number = next_axis_number(builder.nest)
        if not builder.try_move(Opt(OptOps.TILE, rows.axis, amount)):
            return None
    return number if builder.try_move(Opt(OptOps.COALESCE, number, columns.axis)) else None


def _block_rows(builder: RecipeBuilder, image: UOp, rows: UOp, columns: UOp, limit: int) -> int:
    """All rows if their footprint is at most `limit` elements; else equal blocks with half of
    it.
    """
    enclosing = set(builder.nest.outer) - {rows, columns}
    total, single = (elements_read(image, loops) for loops in (enclosing, enclosing | {rows}))
    if total <= limit or isinf(total) or isinf(single):
        return rows.size
    per_row = max(1.0, (total - single) / max(1, rows.size - 1))
    rows_in_cache = 1 + max(0, int((limit / 2 - single) / per_row))
    blocks = -(-rows.size // rows_in_cache)
    cores = builder.target.cores
    blocks = min(-(-blocks // cores) * cores, rows.size)
    return -(-rows.size // blocks)
