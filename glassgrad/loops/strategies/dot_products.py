"""Recipes for products whose operands both lie along the sum: lanes there, a tile of sums around.

Every step loads a vector of each of a few rows of one operand and of a few rows of the other, and
multiplies all pairs; the lanes of each sum are added up once, at the end.
"""

from __future__ import annotations

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.strides import stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.recipe_builder import Draft

MOST_SUMS = 12  # vectors that collect sums; operands need registers too
MOST_STEPS = 8  # along one axis of the tile


def dot_recipe(draft: Draft, others: int) -> bool:
    """Shape a sum of products along memory; False, and nothing done, if the nest is none or has
    more than as many lanes elsewhere.
    """
    reduces = draft.blocks(Ops.REDUCE)
    if len(reduces) != 1 or reduces[0].arg is not Ops.ADD:
        return False
    (reduce,) = reduces
    loads = draft.loads(reduce)
    if len(loads) != 2:
        return False
    along = [r for r in reduce.bound if all(stride(index, r) == 1 for index in loads)]
    loops = [r for r in draft.nest.outer if r.kind is AxisKind.LOOP]
    left, right = loads
    rows = [r for r in loops if r in left.ranges and r not in right.ranges]
    columns = [r for r in loops if r in right.ranges and r not in left.ranges]
    if not along or along[-1].size < others or not rows or not columns:
        return False
    tile = _tile(draft, rows, columns)
    lanes = min(draft.lanes(reduce), 1 << (along[-1].size.bit_length() - 1))
    if tile is None or not draft.attempt(Opt(OptOps.UNROLL, along[-1].axis, lanes)):
        return False
    for axis, amount in tile:
        if amount > 1:
            draft.attempt(Opt(OptOps.UPCAST, axis.axis, amount))
    outside, inside = sorted([axis for axis, _ in tile], key=loops.index)
    if outside.size < inside.size:  # the larger operand goes by once, the other one stays near
        draft.attempt(Opt(OptOps.SWAP, outside.axis, inside.axis))
    return True


def _tile(
    draft: Draft, rows: list[UOp], columns: list[UOp]
) -> tuple[tuple[UOp, int], tuple[UOp, int]] | None:
    """An axis of each side and how much of it: many products for each load."""
    best: tuple[float, tuple[tuple[UOp, int], tuple[UOp, int]]] | None = None
    for row in rows:
        for column in columns:
            for a in _amounts(draft, row):
                for b in _amounts(draft, column):
                    if a * b > MOST_SUMS or a * b == 1:
                        continue
                    score = a * b / (a + b)
                    if best is None or score > best[0]:
                        best = score, ((row, a), (column, b))
    return best[1] if best is not None else None


def _amounts(draft: Draft, axis: UOp) -> list[int]:
    """How many of an axis a tile may take, without storing an element twice where that is wrong."""
    return [
        n
        for n in range(1, min(axis.size, MOST_STEPS) + 1)
        if axis.size % n == 0 or not draft.nest.rewrites
    ]
