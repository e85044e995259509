"""How large a tile of sums to keep in registers: so many rows of so many vectors."""

from __future__ import annotations

from typing import NamedTuple

from glassgrad.ir.uop import UOp
from glassgrad.loops.analysis.mask_bounds import is_whole
from glassgrad.loops.nest import is_added_to
from glassgrad.loops.strategies.recipe_builder import Draft

MOST_ROWS = 8
MOST_VECTORS = 3
FEW_REGISTERS = 16  # with twice as many, loads cost half
ENOUGH_SUMS = 8  # vectors that keep the multipliers busy


class Tile(NamedTuple):
    """`cost` is the time per product in units of a perfect tile's: what is wasted at the edges, and
    loads that products wait for.
    """

    cost: float
    rows: int
    vectors: int


def choose_tile(draft: Draft, rows: UOp, columns: UOp, lanes: int, others: int = 1) -> Tile:
    """The cheapest tile that fits the registers, besides vectors of columns and `others`."""
    return min(tiles(draft, rows, columns, lanes, others), default=Tile(float("inf"), 1, 1))


def tiles(draft: Draft, rows: UOp, columns: UOp, lanes: int, others: int = 1) -> list[Tile]:
    """The cheapest ones of one vector, of two, and so on, as far as registers go."""
    registers, size = draft.target.registers, (rows.size, columns.size)
    heights = _fitting(draft, rows, [n + 1 for n in range(MOST_ROWS)])
    widths = _fitting(draft, columns, [(n + 1) * lanes for n in range(MOST_VECTORS)])
    found: list[Tile] = []
    for vectors in [width // lanes for width in widths]:
        counts = [n for n in heights if (n + 1) * vectors + others <= registers]
        costs = [_cost(size, (n, vectors), lanes, registers) for n in counts]
        found += [Tile(*min(zip(costs, counts)), vectors)] if counts else []
    return found


def whole_rows(draft: Draft, rows: UOp, columns: UOp, lanes: int) -> list[Tile]:
    """All of an axis that is longer than others are high, beside one vector."""
    if not MOST_ROWS < rows.size <= draft.target.registers or columns.size < lanes:
        return []
    size, registers = (rows.size, columns.size), draft.target.registers
    return [Tile(_cost(size, (rows.size, 1), lanes, registers), rows.size, 1)]


def _cost(size: tuple[int, int], tile: tuple[int, int], lanes: int, registers: int) -> float:
    """With many registers, what is multiplied is loaded long before."""
    (rows, columns), (count, vectors) = size, tile
    width = vectors * lanes
    waste = -(-rows // count) * count * -(-columns // width) * width / (rows * columns)
    loads = (0.3 * (count + vectors) / vectors + 0.8) / count
    waiting = 1 + loads * FEW_REGISTERS / registers
    return waste * waiting * max(1.0, ENOUGH_SUMS / (vectors * count))


def _fitting(draft: Draft, axis: UOp, amounts: list[int]) -> list[int]:
    """Those that an axis can be cut into, without storing or adding an element twice where that
    would be wrong, and so that what a mask hides is still left out.
    """
    nest = draft.nest
    must_divide = nest.rewrites or is_added_to(nest, axis)
    is_short = any(limit.axis == axis.axis for limit in nest.limits)
    return [
        n
        for n in amounts
        if n <= axis.size and not (must_divide and axis.size % n) and (is_whole(n) or not is_short)
    ]


def lanes_along(draft: Draft, reduce: UOp, axis: UOp) -> int:
    """As many lanes as a vector has, or fewer if the axis is that short."""
    return min(draft.lanes(reduce), 1 << (axis.size.bit_length() - 1))
