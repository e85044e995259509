"""Graph -> its one-hot values: comparisons with a position, which sums turn into lookups."""

from __future__ import annotations

from collections.abc import Iterable

from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.uop import UOp

# GATHER moves by its second source, so its result is no position.
MOVEMENT = OpGroup.MOVEMENT - {Ops.GATHER}
OFFSET_OPS = frozenset((Ops.ADD, Ops.SUB))
POSITION_KEEPING_OPS = MOVEMENT | {Ops.CAST}
IOTA, CMPEQ, WHERE = Ops.IOTA, Ops.CMPEQ, Ops.WHERE


def find_one_hots(nodes: Iterable[UOp]) -> set[UOp]:
    """The one-hot nodes among nodes in topological order.

    They are not materialized: a sum over the one-hot axis becomes a lookup
    (schedule/kernels/reduction_elimination.py).
    """
    positions: set[UOp] = set()
    one_hots: set[UOp] = set()
    for node in nodes:
        op, src = node.op, node.src
        if op is IOTA:
            positions.add(node)
        elif op is CMPEQ:
            if src[0] in positions or src[1] in positions:
                one_hots.add(node)
        elif op in POSITION_KEEPING_OPS:
            for group in (positions, one_hots):
                if src[0] in group:
                    group.add(node)
        elif op in OFFSET_OPS:
            if src[0] in positions and src[1].is_const:
                positions.add(node)
        elif op is WHERE:
            if src[0] in one_hots and src[1].is_const and src[2].is_const:
                one_hots.add(node)
    return one_hots
