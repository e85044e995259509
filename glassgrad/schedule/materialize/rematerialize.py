"""Rematerialize values with late readers: compute them again instead of holding their memory.

An activation is needed at once by the next product, and again by the gradient of that product's
weights, after all other layers. If its sources are in memory then anyway, a second statement
shortly before the late readers costs some arithmetic and frees the memory meanwhile.
"""

from __future__ import annotations

from math import prod

from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.uop import UOp
from glassgrad.schedule.materialize.cost import Cost
from glassgrad.schedule.materialize.statement import (
    LEAVES,
    Statement,
    Uses,
    reshape_statement,
    sources,
)

MIN_DISTANCE = 8  # reductions between the first and the late readers
MIN_BYTES = 1 << 21  # smaller values are not worth a second statement
MAX_NS = 1.0  # nanoseconds of arithmetic per element
SMALL_RATIO = 8  # sources with this many times fewer elements may wait in memory
MAX_SOURCE_DISTANCE = 3  # reductions between the late readers and another reader of a source
MAX_DEPTH = 16  # depth of the search for available sources
RECOMPUTED_OPS = OpGroup.POINTWISE | OpGroup.MOVEMENT


def rematerialize(
    node: UOp, uses: dict[UOp, Uses], cost: Cost, levels: dict[UOp, int]
) -> Statement | None:
    """A second statement that late readers read instead; None if that does not pay."""
    if prod(node.shape) * node.dtype.itemsize < MIN_BYTES or cost.ns > MAX_NS:
        return None
    first = min(levels[statement.node] for statement, _ in uses[node])
    late = [use for use in uses[node] if levels[use[0].node] > first + MIN_DISTANCE]
    if not late or len(late) == len(uses[node]):
        return None
    late_level = min(levels[statement.node] for statement, _ in late)
    available = _AvailableValues(
        uses, levels, late_level - MAX_SOURCE_DISTANCE, prod(node.shape) // SMALL_RATIO
    )
    if not all(available.has(source) for source in node.src):
        return None
    copy = UOp(Ops.RESHAPE, node.dtype, (node,), node.shape)
    copy.origin, levels[copy] = node.origin, late_level - 1
    recomputed = reshape_statement(copy)
    recomputed.ops, recomputed.order = cost.ops, min(statement.order for statement, _ in late)
    for statement, indices in late:
        statement.rematerialized[node] = copy
        statement.reads.setdefault(copy, {})[indices] = None
        del uses[node][statement, indices]
    for source, at in sources(node, recomputed.axes):
        uses[source][recomputed, at] = None
    return recomputed


class _AvailableValues:
    """The values that are in memory at a reduction level anyway, or are computed from such."""

    def __init__(
        self, uses: dict[UOp, Uses], levels: dict[UOp, int], level: int, small: int
    ) -> None:
        self.uses, self.levels, self.level, self.small = uses, levels, level, small

    def has(self, value: UOp, depth: int = MAX_DEPTH) -> bool:
        if value.op in LEAVES or prod(value.shape) <= self.small:
            return True
        if any(self.levels[statement.node] >= self.level for statement, _ in self.uses[value]):
            return True
        is_made = value.op in RECOMPUTED_OPS and depth > 0
        return is_made and all(self.has(source, depth - 1) for source in value.src)
