"""RecipeBuilder: a nest that a strategy applies moves to, and the queries that strategies share."""

from __future__ import annotations

from math import prod

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.strides import stride, written_stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.moves.table import apply_moves
from glassgrad.loops.nest import binders_of
from glassgrad.loops.opts import IllegalMove, Opt, OptOps

# Instructions per element of ops that are expanded; all others count as one.
OP_WORK = {Ops.EXP2: 20, Ops.LOG2: 25, Ops.SIN: 100, Ops.POW: 150, Ops.THREEFRY: 120}
# Instructions per element: below the first, memory limits the loop; from the last, one vector at a
# time keeps the core busy.
MEMORY_BOUND_WORK, MODERATE_WORK, COMPUTE_BOUND_WORK = 40, 100, 130
GATHER_WORK = 14  # instructions per lane of an indirect load: bounds check, address, load, insert
# instructions of unrolled code; more gains nothing but compiles slowly
MAX_UNROLLED_INSTRUCTIONS = 2048

FREE_OPS = frozenset((Ops.RANGE, Ops.INDEX))  # ops that cost no instruction
BINDER_OPS = frozenset((Ops.REDUCE, Ops.STAGE, Ops.STORE))


class RecipeBuilder:
    """A nest, a target, and the moves applied so far (`nest.recipe`)."""

    def __init__(self, nest: Nest, target: Target) -> None:
        self.nest = nest
        self.target = target
        self._nodes: dict[UOp, list[UOp]] = {}

    def try_move(self, opt: Opt) -> bool:
        """Apply a move if it is legal."""
        return self.try_moves([opt])

    def try_moves(self, opts: list[Opt]) -> bool:
        """Apply all of these moves, or none."""
        try:
            self.nest = apply_moves(self.nest, tuple(opts), self.target)
        except IllegalMove:
            return False
        return True

    def try_each(self, opts: list[Opt]) -> None:
        """Apply these moves; if one is illegal, apply the legal ones."""
        if not self.try_moves(opts):
            for opt in opts:
                self.try_move(opt)

    def order_outer_loops(self, order: list[int]) -> None:
        """Swap the shared loops into this order, outermost first."""
        for position, number in enumerate(order):
            current = [r.axis for r in self.nest.outer if r.kind is AxisKind.LOOP]
            if current[position] != number:
                self.try_move(Opt(OptOps.SWAP, current[position], number))

    def binders(self, op: Ops) -> list[UOp]:
        """The binders with this op, in topological order."""
        return [node for node in binders_of(self.nest.body) if node.op is op]

    def loads(self, binder: UOp) -> list[UOp]:
        """The INDEX of every load in the value of a binder, without those of binders inside."""
        return [node.src[0] for node in self.own_nodes(binder) if node.op is Ops.LOAD]

    def lanes(self, binder: UOp) -> int:
        """The lanes of a vector of the largest element type that a binder computes with."""
        nodes = self.own_nodes(binder)
        sizes = [n.dtype.itemsize for n in nodes if n.dtype.kind not in ("index", "void")]
        return max(1, self.target.vector_bytes // max(sizes, default=1))

    def vectors(self, binder: UOp) -> int:
        """How many vectors to unroll: enough to hide latency, fewer for expensive values."""
        work = self.work(binder)
        if binder.op is Ops.REDUCE:
            return 4 if work < MEMORY_BOUND_WORK else 2 if work < MODERATE_WORK else 1
        return 4 if work < COMPUTE_BOUND_WORK else 1

    def is_memory_bound(self, binder: UOp) -> bool:
        """True if loads and stores take longer than the arithmetic."""
        return self.work(binder) < MEMORY_BOUND_WORK

    def work(self, binder: UOp) -> int:
        """Estimated instructions per element."""
        return sum([OP_WORK.get(node.op, 1) for node in self.own_nodes(binder)])

    def instructions_per_step(self, axis: UOp) -> float:
        """Estimated instructions that one more unrolled element along an axis adds, in all binders:
        a fraction of a vector where the axis has lanes, whole vectors elsewhere.
        """
        total = 0.0
        for binder in binders_of(self.nest.body):
            if binder.op is Ops.SCAN or (axis not in binder.bound and axis not in binder.ranges):
                continue
            unrolled = {r for r in (*binder.bound, *binder.ranges) if r.kind.is_unrolled}
            copies = prod([r.size for r in unrolled if r is not axis]) / self.lanes(binder)
            if not self._has_lanes_along(binder, axis):
                copies = max(copies, self.vectors(binder))
            total += self.work_along(binder, axis) * copies
            total += (
                GATHER_WORK * len(self.indirect_loads(binder, axis)) * copies * self.lanes(binder)
            )
        return total

    def indirect_loads(self, binder: UOp, axis: UOp) -> list[UOp]:
        """The loads whose index along this axis is itself loaded: their lanes are gathered one by
        one.
        """
        return [index for index in self.loads(binder) if _is_indirect(index, axis)]

    def work_along(self, binder: UOp, axis: UOp) -> int:
        """Estimated instructions per element that depend on an axis; others are loop-invariant."""
        own = [node for node in self.own_nodes(binder) if axis in node.ranges]
        return sum([OP_WORK.get(node.op, 1) for node in own if node.op not in FREE_OPS])

    def _has_lanes_along(self, binder: UOp, axis: UOp) -> bool:
        if binder.op is not Ops.REDUCE and axis in binder.bound:
            return written_stride(binder, axis) == 1
        return all(stride(index, axis) in (0, 1) for index in self.loads(binder))

    def own_nodes(self, binder: UOp) -> list[UOp]:
        """The nodes a binder computes itself, in topological order."""
        nodes = self._nodes.get(binder)
        if nodes is None:
            nodes = self._nodes[binder] = binder.value.toposort(stop=_is_binder)
        return nodes

    def inner_iterations(self) -> int:
        """The total number of iterations of all innermost loops."""
        total = 0
        for node in binders_of(self.nest.body):
            if node.op in (Ops.STORE, Ops.STAGE, Ops.REDUCE):
                total += prod(r.size for r in {*node.ranges, *node.bound})
        return total


def _is_indirect(index: UOp, axis: UOp) -> bool:
    if axis not in index.ranges:
        return False
    indices = [i for i in index.indices if axis in i.ranges and i.op is not Ops.RANGE]
    return any(n.op is Ops.LOAD and axis in n.ranges for i in indices for n in i.toposort())


def _is_binder(node: UOp) -> bool:
    return node.op in BINDER_OPS


def write_axis(binder: UOp) -> UOp | None:
    """The axis along which adjacent elements are written."""
    for axis in binder.bound:
        if written_stride(binder, axis) == 1:
            return axis
    return None
