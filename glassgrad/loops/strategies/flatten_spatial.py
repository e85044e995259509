"""Rows and columns of an image -> places: one long axis, which a tile of any size fits.

A tile of six places fits rows of 14 badly, but 196 places well: it goes on in the next row. What
the loops over places read of a large image is more than a cache holds: rows then go by in blocks.
"""

from __future__ import annotations

from math import isinf

from glassgrad.ir.ops import AxisKind
from glassgrad.ir.uop import UOp
from glassgrad.loops.moves.cache_read import elements_read
from glassgrad.loops.nest import next_number
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.recipe_builder import Draft


def join_places(draft: Draft, image: UOp, shared: set[UOp], itemsize: int) -> int | None:
    """for y: for x  ->  for blocks of rows: for places of a block; the number of the last.

    `itemsize` is that of what is kept of the image.
    """
    loops = [r for r in draft.nest.outer if r in shared and r.kind is AxisKind.LOOP]
    if len(loops) < 2:
        return None
    rows, columns = loops[-2:]
    most = draft.target.l2_bytes // itemsize
    amount, number = _rows_at_a_time(draft, image, rows, columns, most), rows.axis
    if amount < rows.size:
        number = next_number(draft.nest)
        if not draft.attempt(Opt(OptOps.TILE, rows.axis, amount)):
            return None
    return number if draft.attempt(Opt(OptOps.JOIN, number, columns.axis)) else None


def _rows_at_a_time(draft: Draft, image: UOp, rows: UOp, columns: UOp, most: int) -> int:
    """All, if they read so few elements; else equal blocks that read half as many."""
    around = set(draft.nest.outer) - {rows, columns}
    whole, one = (elements_read(image, loops) for loops in (around, around | {rows}))
    if whole <= most or isinf(whole) or isinf(one):
        return rows.size
    more = max(1.0, (whole - one) / max(1, rows.size - 1))
    fitting = 1 + max(0, int((most / 2 - one) / more))
    blocks = -(-rows.size // fitting)
    cores = draft.target.cores
    blocks = min(-(-blocks // cores) * cores, rows.size)
    return -(-rows.size // blocks)
