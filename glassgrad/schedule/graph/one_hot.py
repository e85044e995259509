"""Graph -> its one-hots: comparisons with a position, which sums turn into lookups."""

from __future__ import annotations

from collections.abc import Iterable

from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.uop import UOp

# GATHER moves by a second source, so what it gives is no position any more.
MOVEMENT = OpGroup.MOVEMENT - {Ops.GATHER}
SHIFTS = frozenset((Ops.ADD, Ops.SUB))
MOVED = MOVEMENT | {Ops.CAST}
IOTA, CMPEQ, WHERE = Ops.IOTA, Ops.CMPEQ, Ops.WHERE


def one_hots(nodes: Iterable[UOp]) -> set[UOp]:
    """The nodes, given sources first, that say which place along an axis was chosen.

    To store one is to store an axis that a sum over it never walks along: see
    schedule/kernels/reduction_elimination.py.
    """
    positions: set[UOp] = set()
    found: set[UOp] = set()
    for node in nodes:
        op, src = node.op, node.src
        if op is IOTA:
            positions.add(node)
        elif op is CMPEQ:
            if src[0] in positions or src[1] in positions:
                found.add(node)
        elif op in MOVED:
            for group in (positions, found):
                if src[0] in group:
                    group.add(node)
        elif op in SHIFTS:
            if src[0] in positions and src[1].is_const:
                positions.add(node)
        elif op is WHERE:
            if src[0] in found and src[1].is_const and src[2].is_const:
                found.add(node)
    return found
