"""A nest -> the contraction in it: a sum of products in which each operand lacks an axis of the
result that the other has.
"""

from __future__ import annotations

from math import prod

from glassgrad.base.fast_dataclasses import frozen
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Target
from glassgrad.ir.strides import stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.moves.dot import dot_form
from glassgrad.loops.strategies.recipe_builder import Draft

FEW_COLUMNS = 4  # half a vector; with fewer, lanes along the sum are better


@frozen
class Contraction:
    """rows: the result's axis that only `left` has; columns: the unit-stride axis of `right`."""

    reduce: UOp
    rows: UOp
    columns: UOp
    left: UOp
    right: UOp

    def is_dotted(self, target: Target) -> bool:
        """Has the machine an instruction for several of these products at once?"""
        return dot_form(self.reduce, target) is not None

    @property
    def depth(self) -> int:
        return prod(r.size for r in self.reduce.bound)


def find_contraction(draft: Draft) -> Contraction | None:
    reduces, stores = draft.blocks(Ops.REDUCE), draft.blocks(Ops.STORE)
    if len(reduces) != 1 or not stores:
        return None
    (reduce,) = reduces
    loads = draft.loads(reduce)
    if reduce.arg is not Ops.ADD or len(loads) != 2:
        return None
    outer = [r for r in draft.nest.outer if r.kind is AxisKind.LOOP]
    columns = [r for r in outer if all(stride(s.src[0], r) == 1 for s in stores)]
    for left, right in (loads, loads[::-1]):
        lane = [r for r in columns if r in right.ranges and r not in left.ranges]
        rows = [r for r in outer if r in left.ranges and r not in right.ranges]
        if lane and rows and lane[0].size >= FEW_COLUMNS:
            return Contraction(reduce, max(rows, key=lambda r: r.size), lane[0], left, right)
    return None
