"""Graph -> Statements: the values that are materialized; others are computed at each use."""

from __future__ import annotations

from collections.abc import Container, Sequence
from math import prod

from glassgrad.ir.linear import ZERO, linear
from glassgrad.ir.ops import PREFER_SCRATCH, OpGroup, Ops
from glassgrad.ir.uop import UOp, toposort
from glassgrad.schedule.materialize.cost import (
    MAX_EXPRESSION_OPS,
    Cost,
    Costs,
    is_worth_materializing,
)
from glassgrad.schedule.materialize.layout import find_layout_permutes
from glassgrad.schedule.materialize.one_hot import find_one_hots
from glassgrad.schedule.materialize.rematerialize import rematerialize
from glassgrad.schedule.materialize.statement import (
    ALWAYS_MATERIALIZED,
    LEAVES,
    Statement,
    Uses,
    make_statement,
    reduction_levels,
    reshape_statement,
    sources,
)
from glassgrad.schedule.movement import Indices

STORED_OPS = frozenset((Ops.ASSIGN, Ops.CONTIGUOUS, Ops.COPY))
INDEX_ARITHMETIC_NS = 0.5  # cheaper index arithmetic is recomputed by every reader
POINTWISE, ADD = OpGroup.POINTWISE, Ops.ADD


def choose_materialization(roots: Sequence[UOp]) -> dict[UOp, Statement]:
    """The statements of a graph that have elements, by node, in topological order.

    Costs depend on what is materialized, and that on costs. The second round starts from the first
    one's result, which settles nearly everything.
    """
    nodes = toposort(roots)
    statements: dict[UOp, Statement] = {}
    oversized: set[UOp] = set()
    for _ in range(2):
        costs, found = _costs(nodes, statements)
        oversized |= found
        walk = _Walk(nodes, roots, costs, oversized)
        statements = dict(reversed(walk.statements.items()))
    return {node: statement for node, statement in statements.items() if statement.numel}


def _costs(nodes: list[UOp], statements: dict[UOp, Statement]) -> tuple[dict[UOp, Cost], set[UOp]]:
    """The cost per element of each node, and the nodes at which expressions grow too large."""
    boundary: dict[UOp, object] = dict.fromkeys(n for n in nodes if n.op in ALWAYS_MATERIALIZED)
    boundary |= dict.fromkeys(n for n in nodes if n.op is Ops.BUFFER)
    boundary |= statements
    costs, oversized = Costs(boundary), set()
    for node in nodes:
        if node.op in LEAVES:
            costs.add_leaf(node)
        elif costs.add(node).ops > MAX_EXPRESSION_OPS and node not in boundary:
            path = _path_to_smallest(node, costs.of, boundary)
            oversized.add(path[-1])
            boundary[path[-1]] = None
            for longer in reversed(path[:-1]):
                costs.add(longer)
    return costs.of, oversized


def _path_to_smallest(node: UOp, costs: dict[UOp, Cost], boundary: Container[UOp]) -> list[UOp]:
    """The path from a node down to the value of fewest elements that is nearly as large an
    expression.

    A large expression that is repeated, as in an outer product, is materialized before the
    repetition.
    """
    path, smallest = [node], 1
    while True:
        inside = [source for source in path[-1].src if source not in boundary]
        longest = max(inside, key=lambda source: costs[source].ops, default=None)
        if longest is None or costs[longest].ops < MAX_EXPRESSION_OPS / 2:
            return path[:smallest]
        path.append(longest)
        is_smaller = prod(longest.shape) < prod(path[smallest - 1].shape)
        if is_smaller and longest.op in POINTWISE:
            smallest = len(path)


class _Walk:
    """Visits consumers before sources, so that all uses of a node are known when it is visited."""

    def __init__(
        self, nodes: list[UOp], roots: Sequence[UOp], costs: dict[UOp, Cost], oversized: set[UOp]
    ) -> None:
        self.costs = costs
        self.outputs = set(roots)
        self.always_materialized = self.outputs | oversized
        self.needed = set(roots)
        self.one_hots = find_one_hots(nodes)
        self.levels = reduction_levels(nodes)
        self.layout_permutes = find_layout_permutes(nodes, roots)
        self.uses: dict[UOp, Uses] = {node: {} for node in nodes}
        self.statements: dict[UOp, Statement] = {}
        for node in reversed(nodes):
            if self.uses[node] or node in self.needed:
                self._visit(node)

    def _visit(self, node: UOp) -> None:
        if node.op is Ops.BUFFER:
            _record_reads(node, self.uses[node])
        elif node in self.always_materialized or node.op in ALWAYS_MATERIALIZED:
            self._materialize(node)
        elif self._is_expensive_to_recompute(node):
            copy = rematerialize(node, self.uses, self.costs[node], self.levels)
            self._materialize(node)
            if copy is not None:
                self.statements[copy.node] = copy
        else:
            for statement, indices in self.uses[node]:
                for source, at in sources(node, indices):
                    self.uses[source][statement, at] = None

    def _is_expensive_to_recompute(self, node: UOp) -> bool:
        """True if materializing a value is better than computing it for every reader."""
        is_value = (
            node.op in POINTWISE and node not in self.one_hots
        ) or node in self.layout_permutes
        return is_value and _is_worth_keeping(node, self.uses[node], self.costs[node], self.levels)

    def _materialize(self, node: UOp) -> None:
        uses, op = self.uses[node], node.op
        is_unread = not uses and op is Ops.RESHAPE
        statement = self.statements[node] = (
            reshape_statement(node) if is_unread else make_statement(node)
        )
        statement.ops = self.costs[node].ops
        statement.is_stored = node in self.outputs or (
            op in STORED_OPS and node.arg != PREFER_SCRATCH
        )
        if op is Ops.ASSIGN and node.arg:  # elements that are not overwritten come from the target
            self.needed.add(node.src[0])
        _record_reads(node, uses)
        if statement.numel:
            _add_uses(statement, self.uses)


def _record_reads(node: UOp, uses: Uses) -> None:
    for statement, indices in uses:
        statement.reads.setdefault(node, {})[indices] = None


def _add_uses(statement: Statement, uses: dict[UOp, Uses]) -> None:
    if statement.body is not statement.node:
        uses[statement.body][statement, statement.body_indices] = None
        return
    for source, at in sources(statement.body, statement.body_indices):
        uses[source][statement, at] = None


def _are_adjacent(uses: Uses, levels: dict[UOp, int]) -> bool:
    """True if the readers could share their outermost loop, one soon after the other."""
    found = [levels[statement.node] for statement, _ in uses]
    return max(found) - min(found) <= 1 and all(
        statement.axes[:1] == indices[:1] for statement, indices in uses
    )


def _is_worth_keeping(node: UOp, uses: Uses, cost: Cost, levels: dict[UOp, int]) -> bool:
    if not node.shape:
        return False
    if node.op is Ops.PERMUTE and node.src[0].op is Ops.REDUCE:
        return True  # stored instead of the sum itself
    if not cost.bytes and cost.ns < INDEX_ARITHMETIC_NS:
        return False  # index arithmetic
    if _is_converted_while_packing(node, uses):
        return False
    accesses = {(s, ignore_pair_order(indices)) for s, indices in uses if not s.is_rematerialized}
    evaluations = sum(
        evaluations_per_element(statement, indices) for statement, indices in accesses
    )
    if evaluations <= 1:
        return False
    return is_worth_materializing(node, cost, evaluations, len(uses), _are_adjacent(uses, levels))


def _is_converted_while_packing(node: UOp, uses: Uses) -> bool:
    """True if it converts narrow numbers in memory that only products read: packing converts
    them.
    """
    if node.op is not Ops.CAST or node.src[0].dtype.itemsize >= node.dtype.itemsize:
        return False
    found = node.src[0]
    while found.op in OpGroup.MOVEMENT:
        found = found.src[0]
    return found.op is Ops.BUFFER and all(s.reduced and s.body.op is Ops.MUL for s, _ in uses)


def ignore_pair_order(indices: Indices) -> Indices:
    """The indices without reversal of axes of size two: swapped, each element is still computed
    once.
    """
    return tuple([_unreversed(index) for index in indices])


def _unreversed(index: UOp) -> UOp:
    """1 - r  ->  r, where r is 0 or 1"""
    if index.op is ADD and (found := reversed_range(index)) is not None and found.size == 2:
        return found
    return index


def reversed_range(index: UOp) -> UOp | None:
    """The range r of an index n-1-r; None for other indices."""
    terms, offset = linear(index)
    (atom, factor), *others = terms.items() if terms else [(index, 0)]
    is_reversed = factor == -1 and not others and atom.op is Ops.RANGE
    return atom if is_reversed and atom.src[0].is_const and offset == atom.size - 1 else None


def evaluations_per_element(statement: Statement, indices: Indices) -> float:
    """How often a statement evaluates each element that it reads at these indices.

    What depends only on the outermost loops is computed once, outside of the inner ones.
    """
    if statement.node.op is Ops.REDUCE and statement.node.arg[0] is Ops.ASSIGN:
        return 1.0  # a scatter writes directly (schedule/kernels/scatter.py)
    used = frozenset[UOp]().union(*[index.ranges for index in indices])
    loops = [axis for axis in statement.axes if axis is not ZERO]
    if used == frozenset(loops[: len(used)]):
        return 1.0
    return statement.loops / (prod(found.size for found in used) or 1)
