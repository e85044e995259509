"""Find the contraction in a nest: a sum of products of two operands, with one output axis each."""

from __future__ import annotations

from math import prod

from glassgrad.base.fast_dataclasses import frozen
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Target
from glassgrad.ir.strides import stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.moves.dot import dot_operands
from glassgrad.loops.strategies.shared.recipe_builder import RecipeBuilder

MIN_COLUMNS = 4  # half a vector; with fewer, lanes along the reduction are better


@frozen
class Contraction:
    """`rows` is an output axis that only `left` has, `columns` the unit-stride output axis of
    `right`.
    """

    reduce: UOp
    rows: UOp
    columns: UOp
    left: UOp
    right: UOp

    def has_dot_instruction(self, target: Target) -> bool:
        """True if the machine multiplies and adds several of these products in one instruction."""
        return dot_operands(self.reduce, target) is not None

    @property
    def depth(self) -> int:
        """The number of reduction steps."""
        return prod(r.size for r in self.reduce.bound)


def find_contraction(builder: RecipeBuilder) -> Contraction | None:
    """The contraction of a nest whose only reduction it is; None if there is none."""
    reduces, stores = builder.binders(Ops.REDUCE), builder.binders(Ops.STORE)
    if len(reduces) != 1 or not stores:
        return None
    (reduce,) = reduces
    loads = builder.loads(reduce)
    if reduce.arg is not Ops.ADD or len(loads) != 2:
        return None
    outer = [r for r in builder.nest.outer if r.kind is AxisKind.LOOP]
    columns = [r for r in outer if all(stride(s.src[0], r) == 1 for s in stores)]
    for left, right in (loads, loads[::-1]):
        columns_of_right = [r for r in columns if r in right.ranges and r not in left.ranges]
        rows = [r for r in outer if r in left.ranges and r not in right.ranges]
        if columns_of_right and rows and columns_of_right[0].size >= MIN_COLUMNS:
            return Contraction(
                reduce, max(rows, key=lambda r: r.size), columns_of_right[0], left, right
            )
    return None
