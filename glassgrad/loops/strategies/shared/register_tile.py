"""Choose the size of a register tile of sums: rows times vectors of columns."""

from __future__ import annotations

from typing import NamedTuple

from glassgrad.ir.uop import UOp
from glassgrad.loops.analysis.mask_bounds import is_mask_aligned
from glassgrad.loops.nest import accumulates_in_scratch
from glassgrad.loops.strategies.shared.recipe_builder import RecipeBuilder

MAX_TILE_ROWS = 8  # rows; each broadcasts a scalar of the left operand
MAX_TILE_VECTORS = 3  # vectors of columns
# vector registers of AVX2, for which the load cost is fitted; twice as many halve it
REFERENCE_REGISTERS = 16
MIN_ACCUMULATORS = 8  # vectors: FMA latency (4) times FMA units (2)


class Tile(NamedTuple):
    """`cost` is the time per product relative to a perfect tile: waste at the edges and stalls on
    loads.
    """

    cost: float
    rows: int
    vectors: int


def choose_tile(
    builder: RecipeBuilder, rows: UOp, columns: UOp, lanes: int, reserved: int = 1
) -> Tile:
    """The cheapest tile that fits the registers, next to one vector per column and `reserved`
    others.
    """
    return min(tiles(builder, rows, columns, lanes, reserved), default=Tile(float("inf"), 1, 1))


def tiles(
    builder: RecipeBuilder, rows: UOp, columns: UOp, lanes: int, reserved: int = 1
) -> list[Tile]:
    """The cheapest tile for each number of vectors."""
    registers, size = builder.target.registers, (rows.size, columns.size)
    heights = _legal_amounts(builder, rows, [n + 1 for n in range(MAX_TILE_ROWS)])
    widths = _legal_amounts(builder, columns, [(n + 1) * lanes for n in range(MAX_TILE_VECTORS)])
    result: list[Tile] = []
    for vectors in [width // lanes for width in widths]:
        row_counts = [n for n in heights if (n + 1) * vectors + reserved <= registers]
        costs = [_cost(size, (n, vectors), lanes, registers) for n in row_counts]
        result += [Tile(*min(zip(costs, row_counts)), vectors)] if row_counts else []
    return result


def whole_row_tiles(builder: RecipeBuilder, rows: UOp, columns: UOp, lanes: int) -> list[Tile]:
    """A tile of one vector that covers all of an axis longer than MAX_TILE_ROWS."""
    if not MAX_TILE_ROWS < rows.size <= builder.target.registers or columns.size < lanes:
        return []
    size, registers = (rows.size, columns.size), builder.target.registers
    return [Tile(_cost(size, (rows.size, 1), lanes, registers), rows.size, 1)]


def _cost(size: tuple[int, int], tile: tuple[int, int], lanes: int, registers: int) -> float:
    """Time per product. With more registers, operands are loaded earlier and stall less."""
    (rows, columns), (count, vectors) = size, tile
    width = vectors * lanes
    waste = -(-rows // count) * count * -(-columns // width) * width / (rows * columns)
    loads = (0.3 * (count + vectors) / vectors + 0.8) / count
    waiting = 1 + loads * REFERENCE_REGISTERS / registers
    return waste * waiting * max(1.0, MIN_ACCUMULATORS / (vectors * count))


def _legal_amounts(builder: RecipeBuilder, axis: UOp, amounts: list[int]) -> list[int]:
    """The amounts an axis can be split into: exact divisors where an overlapping tail would be
    wrong, aligned ones where the axis has mask bounds.
    """
    nest = builder.nest
    must_divide = nest.may_alias or accumulates_in_scratch(nest, axis)
    has_mask_bounds = any(mask_bound.axis == axis.axis for mask_bound in nest.mask_bounds)
    return [
        n
        for n in amounts
        if n <= axis.size
        and not (must_divide and axis.size % n)
        and (is_mask_aligned(n) or not has_mask_bounds)
    ]


def lanes_along(builder: RecipeBuilder, reduce: UOp, axis: UOp) -> int:
    """The lanes of a vector, or fewer if the axis is shorter."""
    return min(builder.lanes(reduce), 1 << (axis.size.bit_length() - 1))
