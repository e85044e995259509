"""A value that waits long for its last readers is computed a second time for them.

The result of an activation, or of a normalisation, is needed at once by the next product, and again
by the gradient of that product's weights, after all other layers have gone both ways. Where what it
is made of is there anyway by then, a *twin* of the statement, shortly before the late readers,
costs some arithmetic and saves the memory meanwhile.
"""

from __future__ import annotations

from math import prod

from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.uop import UOp
from glassgrad.schedule.materialize.cost import Cost
from glassgrad.schedule.materialize.statement import LEAVES, Statement, Uses, as_before, sources

LONG = 8  # reductions from one reader to another
FEW_BYTES = 1 << 21  # not worth a second statement
MOST_NS = 1.0  # of arithmetic for an element
SMALL = 8  # times fewer elements: nobody minds if it waits
NEAR = 3  # reductions between the late readers and whoever else needs a source
DEEPEST = 16  # steps down to look for what is there
THROUGH = OpGroup.POINTWISE | OpGroup.MOVEMENT


def twin_of(
    node: UOp, uses: dict[UOp, Uses], cost: Cost, levels: dict[UOp, int]
) -> Statement | None:
    """A second statement, which late readers of the first read from now on; None if none is."""
    if prod(node.shape) * node.dtype.itemsize < FEW_BYTES or cost.ns > MOST_NS:
        return None
    first = min(levels[statement.node] for statement, _ in uses[node])
    late = [use for use in uses[node] if levels[use[0].node] > first + LONG]
    if not late or len(late) == len(uses[node]):
        return None
    when = min(levels[statement.node] for statement, _ in late)
    there = _There(uses, levels, when - NEAR, prod(node.shape) // SMALL)
    if not all(there.has(source) for source in node.src):
        return None
    copy = UOp(Ops.RESHAPE, node.dtype, (node,), node.shape)
    copy.origin, levels[copy] = node.origin, when - 1
    twin = as_before(copy)
    twin.ops, twin.order = cost.ops, min(statement.order for statement, _ in late)
    for statement, indices in late:
        statement.twins[node] = copy
        statement.reads.setdefault(copy, {})[indices] = None
        del uses[node][statement, indices]
    for source, at in sources(node, twin.axes):
        uses[source][twin, at] = None
    return twin


class _There:
    """What is in memory at some level of reductions anyway, or made of that."""

    def __init__(
        self, uses: dict[UOp, Uses], levels: dict[UOp, int], level: int, small: int
    ) -> None:
        self.uses, self.levels, self.level, self.small = uses, levels, level, small

    def has(self, value: UOp, depth: int = DEEPEST) -> bool:
        if value.op in LEAVES or prod(value.shape) <= self.small:
            return True
        if any(self.levels[statement.node] >= self.level for statement, _ in self.uses[value]):
            return True
        is_made = value.op in THROUGH and depth > 0
        return is_made and all(self.has(source, depth - 1) for source in value.src)
