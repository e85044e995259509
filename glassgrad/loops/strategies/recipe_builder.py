"""A recipe in the making: the nest after the moves so far, and what a chooser asks of it."""

from __future__ import annotations

from math import prod

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.strides import stride, written_stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.moves.table import apply_moves
from glassgrad.loops.nest import blocks_of
from glassgrad.loops.opts import IllegalMove, Opt, OptOps

# What an op becomes when it is expanded, in instructions; all others are about one.
OP_WORK = {Ops.EXP2: 20, Ops.LOG2: 25, Ops.SIN: 100, Ops.POW: 150, Ops.THREEFRY: 120}
LIGHT, HEAVY, HEAVIEST = 40, 100, 130  # instructions for an element
GATHERED = 14  # instructions for a lane whose place is looked up: bounds, address, load, insert
MAX_UNROLLED = 2048  # instructions of copies: more gain nothing, but take long to compile

FREE = frozenset((Ops.RANGE, Ops.INDEX))  # no instructions of their own
VALUES = frozenset((Ops.REDUCE, Ops.STAGE, Ops.STORE))


class Draft:
    """A nest and a target; `attempt` makes a move if it is legal."""

    def __init__(self, nest: Nest, target: Target) -> None:
        self.nest = nest
        self.target = target
        self._nodes: dict[UOp, list[UOp]] = {}

    def attempt(self, opt: Opt) -> bool:
        return self.attempt_together([opt])

    def attempt_together(self, opts: list[Opt]) -> bool:
        """Make all of these moves, or none."""
        try:
            self.nest = apply_moves(self.nest, tuple(opts), self.target)
        except IllegalMove:
            return False
        return True

    def attempt_all(self, opts: list[Opt]) -> None:
        """Make these moves; where one is not legal, those that are."""
        if not self.attempt_together(opts):
            for opt in opts:
                self.attempt(opt)

    def arrange(self, order: list[int]) -> None:
        """The shared loops in this order, outermost first."""
        for place, number in enumerate(order):
            now = [r.axis for r in self.nest.outer if r.kind is AxisKind.LOOP]
            if now[place] != number:
                self.attempt(Opt(OptOps.SWAP, now[place], number))

    def blocks(self, op: Ops) -> list[UOp]:
        return [node for node in blocks_of(self.nest.body) if node.op is op]

    def loads(self, block: UOp) -> list[UOp]:
        """The INDEX of every load that a block makes itself, not inside of another block."""
        return [node.src[0] for node in self.own_nodes(block) if node.op is Ops.LOAD]

    def lanes(self, block: UOp) -> int:
        """How many of the largest elements that a block computes with fit a vector."""
        nodes = self.own_nodes(block)
        sizes = [n.dtype.itemsize for n in nodes if n.dtype.kind not in ("index", "void")]
        return max(1, self.target.vector_bytes // max(sizes, default=1))

    def vectors(self, block: UOp) -> int:
        """How many vectors at once: enough to hide latencies, few if much is computed; more of what
        is written, as that is computed side by side.
        """
        work = self.work(block)
        if block.op is Ops.REDUCE:
            return 4 if work < LIGHT else 2 if work < HEAVY else 1
        return 4 if work < HEAVIEST else 1

    def is_light(self, block: UOp) -> bool:
        """Does it take longer to read and write than to compute?"""
        return self.work(block) < LIGHT

    def work(self, block: UOp) -> int:
        """Instructions for one element, roughly."""
        return sum([OP_WORK.get(node.op, 1) for node in self.own_nodes(block)])

    def per_step(self, axis: UOp) -> float:
        """Instructions that one more element along an axis takes, in all blocks that depend on it:
        a part of a vector where the axis has the lanes, else whole vectors.
        """
        total = 0.0
        for block in blocks_of(self.nest.body):
            if block.op is Ops.SCAN or (axis not in block.bound and axis not in block.ranges):
                continue
            unrolled = {r for r in (*block.bound, *block.ranges) if r.kind.is_unrolled}
            copies = prod([r.size for r in unrolled if r is not axis]) / self.lanes(block)
            if not self._has_lanes_along(block, axis):
                copies = max(copies, self.vectors(block))
            total += self.work_along(block, axis) * copies
            total += GATHERED * len(self.looked_up(block, axis)) * copies * self.lanes(block)
        return total

    def looked_up(self, block: UOp, axis: UOp) -> list[UOp]:
        """Places of loads that depend on what is in memory: lanes are loaded one by one."""
        return [index for index in self.loads(block) if _is_looked_up(index, axis)]

    def work_along(self, block: UOp, axis: UOp) -> int:
        """Instructions for one element that depend on an axis; all others are computed once."""
        own = [node for node in self.own_nodes(block) if axis in node.ranges]
        return sum([OP_WORK.get(node.op, 1) for node in own if node.op not in FREE])

    def _has_lanes_along(self, block: UOp, axis: UOp) -> bool:
        if block.op is not Ops.REDUCE and axis in block.bound:
            return written_stride(block, axis) == 1
        return all(stride(index, axis) in (0, 1) for index in self.loads(block))

    def own_nodes(self, block: UOp) -> list[UOp]:
        """What a block computes itself, sources first."""
        found = self._nodes.get(block)
        if found is None:
            found = self._nodes[block] = block.value.toposort(stop=_is_block)
        return found

    def steps(self) -> int:
        """How many times the innermost loops run in all."""
        total = 0
        for node in blocks_of(self.nest.body):
            if node.op in (Ops.STORE, Ops.STAGE, Ops.REDUCE):
                total += prod(r.size for r in {*node.ranges, *node.bound})
        return total


def _is_looked_up(index: UOp, axis: UOp) -> bool:
    if axis not in index.ranges:
        return False
    places = [i for i in index.indices if axis in i.ranges and i.op is not Ops.RANGE]
    return any(n.op is Ops.LOAD and axis in n.ranges for i in places for n in i.toposort())


def _is_block(node: UOp) -> bool:
    return node.op in VALUES
