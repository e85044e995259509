"""Strategy for contractions whose operands are both contiguous along the reduction.

Lanes run along the reduction, with a register tile of sums: each step loads a vector of some rows
of both operands and multiplies all pairs. A horizontal add ends each sum.
"""

from __future__ import annotations

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.strides import stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.shared.recipe_builder import RecipeBuilder

MAX_ACCUMULATORS = 12  # vector registers; the operands need the others
MAX_TILE_ROWS = 8  # along one axis of the tile


def dot_product_strategy(builder: RecipeBuilder, other_lanes: int) -> bool:
    """Shape a sum of products that is contiguous in both operands.

    False, with nothing changed, if the nest is no such sum or `other_lanes` along another axis are
    more.
    """
    reduces = builder.binders(Ops.REDUCE)
    if len(reduces) != 1 or reduces[0].arg is not Ops.ADD:
        return False
    (reduce,) = reduces
    loads = builder.loads(reduce)
    if len(loads) != 2:
        return False
    contiguous = [r for r in reduce.bound if all(stride(index, r) == 1 for index in loads)]
    loops = [r for r in builder.nest.outer if r.kind is AxisKind.LOOP]
    left, right = loads
    rows = [r for r in loops if r in left.ranges and r not in right.ranges]
    columns = [r for r in loops if r in right.ranges and r not in left.ranges]
    if not contiguous or contiguous[-1].size < other_lanes or not rows or not columns:
        return False
    tile = _tile(builder, rows, columns)
    lanes = min(builder.lanes(reduce), 1 << (contiguous[-1].size.bit_length() - 1))
    if tile is None or not builder.try_move(Opt(OptOps.UNROLL, contiguous[-1].axis, lanes)):
        return False
    for axis, amount in tile:
        if amount > 1:
            builder.try_move(Opt(OptOps.UPCAST, axis.axis, amount))
    outside, inside = sorted([axis for axis, _ in tile], key=loops.index)
    if outside.size < inside.size:  # stream the larger operand once, keep the smaller one in cache
        builder.try_move(Opt(OptOps.SWAP, outside.axis, inside.axis))
    return True


def _tile(
    builder: RecipeBuilder, rows: list[UOp], columns: list[UOp]
) -> tuple[tuple[UOp, int], tuple[UOp, int]] | None:
    """The tile with the most products per load: (axis, amount) for each operand."""
    best: tuple[float, tuple[tuple[UOp, int], tuple[UOp, int]]] | None = None
    for row in rows:
        for column in columns:
            for a in _amounts(builder, row):
                for b in _amounts(builder, column):
                    if a * b > MAX_ACCUMULATORS or a * b == 1:
                        continue
                    score = a * b / (a + b)
                    if best is None or score > best[0]:
                        best = score, ((row, a), (column, b))
    return best[1] if best is not None else None


def _amounts(builder: RecipeBuilder, axis: UOp) -> list[int]:
    """The tile sizes an axis allows; only divisors if the nest must not store an element twice."""
    return [
        n
        for n in range(1, min(axis.size, MAX_TILE_ROWS) + 1)
        if axis.size % n == 0 or not builder.nest.may_alias
    ]
