"""Graph -> Statements: which values are materialised; others are computed where used."""

from __future__ import annotations

from collections.abc import Container, Sequence
from math import prod

from glassgrad.ir.linear import ZERO, linear
from glassgrad.ir.ops import PREFER_SCRATCH, OpGroup, Ops
from glassgrad.ir.uop import UOp, toposort
from glassgrad.schedule.graph.layout import arranged
from glassgrad.schedule.graph.one_hot import one_hots
from glassgrad.schedule.kernels.movement import Indices
from glassgrad.schedule.materialize.cost import MOST_OPS, Cost, Costs, worth_keeping
from glassgrad.schedule.materialize.rematerialize import twin_of
from glassgrad.schedule.materialize.statement import (
    ALWAYS_KEPT,
    LEAVES,
    Statement,
    Uses,
    as_before,
    make_statement,
    reduction_levels,
    sources,
)

STORED = frozenset((Ops.ASSIGN, Ops.CONTIGUOUS, Ops.COPY))
PLACE_NS = 0.5  # arithmetic on places alone that takes less is done again by every reader
POINTWISE, ADD = OpGroup.POINTWISE, Ops.ADD


def choose_fates(roots: Sequence[UOp]) -> dict[UOp, Statement]:
    """The statements of a graph that have elements, by node, in topological order.

    Costs depend on what is kept, and what is kept on costs: the second round starts from the first
    one's answer, which settles nearly everything.
    """
    nodes = toposort(roots)
    kept: dict[UOp, Statement] = {}
    too_long: set[UOp] = set()
    for _ in range(2):
        costs, more = _costs(nodes, kept)
        too_long |= more
        walk = _Walk(nodes, roots, costs, too_long)
        kept = dict(reversed(walk.kept.items()))
    return {node: statement for node, statement in kept.items() if statement.numel}


def _costs(nodes: list[UOp], kept: dict[UOp, Statement]) -> tuple[dict[UOp, Cost], set[UOp]]:
    """What an element of each node costs, and the nodes at which expressions grow too long."""
    boundary: dict[UOp, object] = dict.fromkeys(n for n in nodes if n.op in ALWAYS_KEPT)
    boundary |= dict.fromkeys(n for n in nodes if n.op is Ops.BUFFER)
    boundary |= kept
    costs, too_long = Costs(boundary), set()
    for node in nodes:
        if node.op in LEAVES:
            costs.add_leaf(node)
        elif costs.add(node).ops > MOST_OPS and node not in boundary:
            path = _to_smallest(node, costs.of, boundary)
            too_long.add(path[-1])
            boundary[path[-1]] = None
            for longer in reversed(path[:-1]):
                costs.add(longer)
    return costs.of, too_long


def _to_smallest(node: UOp, costs: dict[UOp, Cost], boundary: Container[UOp]) -> list[UOp]:
    """Down from a node to the value of fewest elements that is nearly as long.

    Where a long value is repeated, as in an outer product, it is kept before that, not after.
    """
    path, smallest = [node], 1
    while True:
        inside = [source for source in path[-1].src if source not in boundary]
        longest = max(inside, key=lambda source: costs[source].ops, default=None)
        if longest is None or costs[longest].ops < MOST_OPS / 2:
            return path[:smallest]
        path.append(longest)
        is_smaller = prod(longest.shape) < prod(path[smallest - 1].shape)
        if is_smaller and longest.op in POINTWISE:
            smallest = len(path)


class _Walk:
    """From consumers to sources: a node's uses are known when it is reached."""

    def __init__(
        self, nodes: list[UOp], roots: Sequence[UOp], costs: dict[UOp, Cost], too_long: set[UOp]
    ) -> None:
        self.costs = costs
        self.outputs = set(roots)
        self.always = self.outputs | too_long
        self.needed = set(roots)
        self.lookups = one_hots(nodes)
        self.levels = reduction_levels(nodes)
        self.moved = arranged(nodes, roots)
        self.uses: dict[UOp, Uses] = {node: {} for node in nodes}
        self.kept: dict[UOp, Statement] = {}
        for node in reversed(nodes):
            if self.uses[node] or node in self.needed:
                self._reach(node)

    def _reach(self, node: UOp) -> None:
        if node.op is Ops.BUFFER:
            _record_reads(node, self.uses[node])
        elif node in self.always or node.op in ALWAYS_KEPT:
            self._keep(node)
        elif self._is_dear(node):
            twin = twin_of(node, self.uses, self.costs[node], self.levels)
            self._keep(node)
            if twin is not None:
                self.kept[twin.node] = twin
        else:
            for statement, indices in self.uses[node]:
                for source, at in sources(node, indices):
                    self.uses[source][statement, at] = None

    def _is_dear(self, node: UOp) -> bool:
        """Is it better to keep a value than to compute it for every reader?"""
        is_value = (node.op in POINTWISE and node not in self.lookups) or node in self.moved
        return is_value and _is_kept(node, self.uses[node], self.costs[node], self.levels)

    def _keep(self, node: UOp) -> None:
        uses, op = self.uses[node], node.op
        is_unread = not uses and op is Ops.RESHAPE
        statement = self.kept[node] = as_before(node) if is_unread else make_statement(node)
        statement.ops = self.costs[node].ops
        statement.is_stored = node in self.outputs or (op in STORED and node.arg != PREFER_SCRATCH)
        if op is Ops.ASSIGN and node.arg:  # what is not overwritten is the target's
            self.needed.add(node.src[0])
        _record_reads(node, uses)
        if statement.numel:
            _use(statement, self.uses)


def _record_reads(node: UOp, uses: Uses) -> None:
    for statement, indices in uses:
        statement.reads.setdefault(node, {})[indices] = None


def _use(statement: Statement, uses: dict[UOp, Uses]) -> None:
    if statement.body is not statement.node:
        uses[statement.body][statement, statement.body_indices] = None
        return
    for source, at in sources(statement.body, statement.body_indices):
        uses[source][statement, at] = None


def _are_near(uses: Uses, levels: dict[UOp, int]) -> bool:
    """Could the readers of a value share their outermost loop, one soon after the other?"""
    found = [levels[statement.node] for statement, _ in uses]
    return max(found) - min(found) <= 1 and all(
        statement.axes[:1] == indices[:1] for statement, indices in uses
    )


def _is_kept(node: UOp, uses: Uses, cost: Cost, levels: dict[UOp, int]) -> bool:
    if not node.shape:
        return False
    if node.op is Ops.PERMUTE and node.src[0].op is Ops.REDUCE:
        return True  # instead of the sum itself
    if not cost.bytes and cost.ns < PLACE_NS:
        return False  # it says where an element is, and whoever needs it can tell
    if _is_packed(node, uses):
        return False
    places = {(s, in_pairs(indices)) for s, indices in uses if not s.is_twin}
    evaluations = sum(repeats(statement, indices) for statement, indices in places)
    if evaluations <= 1:
        return False
    return worth_keeping(node, cost, evaluations, len(uses), _are_near(uses, levels))


def _is_packed(node: UOp, uses: Uses) -> bool:
    """Narrow numbers in memory that only products read: those convert what they copy of them."""
    if node.op is not Ops.CAST or node.src[0].dtype.itemsize >= node.dtype.itemsize:
        return False
    found = node.src[0]
    while found.op in OpGroup.MOVEMENT:
        found = found.src[0]
    return found.op is Ops.BUFFER and all(s.reduced and s.body.op is Ops.MUL for s, _ in uses)


def in_pairs(indices: Indices) -> Indices:
    """The same for both elements of an axis of two: where they change places, each of them is
    computed once.
    """
    return tuple([_not_turned(index) for index in indices])


def _not_turned(index: UOp) -> UOp:
    """1 - r  ->  r, where r is 0 or 1"""
    if index.op is ADD and (found := turned_range(index)) is not None and found.size == 2:
        return found
    return index


def turned_range(index: UOp) -> UOp | None:
    """The range r of an index that is n-1-r."""
    terms, offset = linear(index)
    (atom, factor), *others = terms.items() if terms else [(index, 0)]
    is_turned = factor == -1 and not others and atom.op is Ops.RANGE
    return atom if is_turned and atom.src[0].is_const and offset == atom.size - 1 else None


def repeats(statement: Statement, indices: Indices) -> float:
    """How often a statement's loops come past each element that it reads at these indices.

    What depends only on the outermost loops is computed outside of the inner ones: once.
    """
    if statement.node.op is Ops.REDUCE and statement.node.arg[0] is Ops.ASSIGN:
        return 1.0  # places are written to, not compared (schedule/kernels/scatter.py)
    seen = frozenset[UOp]().union(*[index.ranges for index in indices])
    loops = [axis for axis in statement.axes if axis is not ZERO]
    if seen == frozenset(loops[: len(seen)]):
        return 1.0
    return statement.loops / (prod(found.size for found in seen) or 1)
