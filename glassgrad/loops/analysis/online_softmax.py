"""Find the sums that a maximum scales: sums of exp(s - m)·x over the axis of the maximum m.

If m grows by d, such a sum is multiplied by exp(-d). So it can be computed block by block with a
running maximum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from glassgrad.base.fast_dataclasses import frozen
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.reindex import reindex
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp
from glassgrad.loops.nest import binders_of, binders_over, nodes_of, reading_order
from glassgrad.loops.opts import IllegalMove, require


class Kind(Enum):
    """How a value depends on the maximum."""

    MAXIMUM = "the maximum itself"
    SHIFTED = "rate · (s - maximum), where s is the reduced value"
    EXPONENTIAL = "factor · 2 ** (rate · (s - maximum))"
    OTHER = "any other dependence"


class Dependence(NamedTuple):
    """`rows` stand for the ranges that the maximum depends on; `loop` is the loop over the axis, if
    any.
    """

    kind: Kind
    rate: float = 1.0
    rows: tuple[UOp, ...] = ()
    loop: UOp | None = None


OTHER = Dependence(Kind.OTHER)


@frozen
class OnlineSoftmax:
    """Everything along the axis of a maximum: loops, scratch dimensions and dependent sums."""

    maximum: UOp
    rows: tuple[UOp, ...]  # the ranges the maximum depends on, without shared loops
    loops: frozenset[UOp]
    stages: Mapping[UOp, int]
    sums: Mapping[UOp, Dependence]
    exponentials: frozenset[UOp]  # the scratch that holds exponentials relative to the maximum


def find_online_softmax(nest: Nest, axis: UOp) -> OnlineSoftmax:
    """The maximum over this axis and all that can be strip-mined with it; IllegalMove if there is
    more.
    """
    maxima = [node for node in binders_over(nest, axis) if node.op is Ops.REDUCE]
    if len(maxima) != 1 or maxima[0].arg is not Ops.MAX or maxima[0].bound != (axis,):
        raise IllegalMove("ONLINE_SOFTMAX needs the axis of exactly one maximum")
    (maximum,) = maxima
    rows = tuple(reading_order(nest, maximum.ranges - set(nest.outer)))
    analysis = _DependenceAnalysis(maximum, rows)
    analysis.find(nodes_of(nest.body))
    require(bool(analysis.sums), "no sum is scaled by exp of this maximum")
    loops, stages = loops_along(nest, {axis, *[r.loop for r in analysis.sums.values() if r.loop]})
    for binder in binders_of(nest.body):
        is_member = binder is maximum or binder in analysis.sums or binder in stages
        is_unrelated = loops.isdisjoint(binder.bound)
        require(is_member or is_unrelated, "the axis is used by more than the maximum and its sums")
        has_two_loops = is_member and len(loops.intersection(binder.bound)) != 1
        require(not has_two_loops, "a statement has two loops over this axis")
        require(
            is_unrelated or analysis.found.get(binder.src[0]) != OTHER,
            "a sum depends on another sum over the axis",
        )
    exponentials = [
        s for s in stages if (found := analysis.found.get(s)) and found.kind is Kind.EXPONENTIAL
    ]
    return OnlineSoftmax(maximum, rows, loops, stages, analysis.sums, frozenset(exponentials))


def loops_along(nest: Nest, found: set[UOp]) -> tuple[frozenset[UOp], dict[UOp, int]]:
    """All loops over the axis of the given ones, connected through scratch, and the scratch
    dimension of each STAGE.
    """
    loops, stages, size = set(found), dict[UOp, int](), max(r.size for r in found)
    nodes = nodes_of(nest.body)
    indices = [node for node in nodes if node.op is Ops.INDEX and node.src[0].op is Ops.STAGE]
    is_done = False
    while not is_done:
        is_done = True
        for index in indices:
            stage = index.src[0]
            for number, read in enumerate(index.indices):
                written = stage.src[1 + number]
                if loops.isdisjoint((read, written)):
                    continue
                one_way = stages.setdefault(stage, number) == number
                is_plain = read.op is Ops.RANGE and written.op is Ops.RANGE
                require(
                    one_way and is_plain,
                    "scratch along the axis is not read with the indices it is written with",
                )
                is_done = is_done and {read, written} <= loops
                loops |= {read, written}
    for r in loops:
        is_plain = r.src[0].is_const and r.kind in (AxisKind.LOOP, AxisKind.REDUCE)
        require(
            is_plain and r not in nest.outer, "a loop along the axis is already split or shared"
        )
        require(r.size == size, "only a part of the axis is read")
    return frozenset(loops), stages


# ---------------------------------------------------------------------- dependence on the maximum


class _DependenceAnalysis:
    """Forward analysis over all nodes; values independent of the maximum have no entry."""

    def __init__(self, maximum: UOp, rows: tuple[UOp, ...]) -> None:
        self.maximum = maximum
        self.rows = rows
        self.found: dict[UOp, Dependence] = {}
        self.sums: dict[UOp, Dependence] = {}

    def find(self, nodes: Iterable[UOp]) -> None:
        for node in nodes:
            if node is self.maximum:
                self.found[node] = Dependence(Kind.MAXIMUM, 1.0, self.rows)
            elif not self.found.keys().isdisjoint(node.src):
                rule = RULES.get(node.op)
                self.found[node] = OTHER if rule is None else rule(self, node)

    def _at(self, node: UOp) -> list[Dependence | None]:
        return [self.found.get(source) for source in node.src]

    def subtracted(self, node: UOp) -> Dependence:
        """s - maximum; or the difference of two exponentials"""
        left, right = self._at(node)
        if left is not None or right is None or right.kind is not Kind.MAXIMUM:
            return self.added(node)
        (axis,) = self.maximum.bound
        indices = dict(zip(self.rows, right.rows, strict=True))
        for r in node.src[0].ranges:
            if r.size == axis.size:
                same = reindex(self.maximum.src[0], {**indices, axis: r})
                if same.cast(node.dtype) is node.src[0]:
                    return Dependence(Kind.SHIFTED, 1.0, right.rows, r)
        return OTHER

    def added(self, node: UOp) -> Dependence:
        """Exponentials of one kind, or one beside zeros, as in where(c, x, 0)."""
        nonzero = [
            found
            for source, found in zip(node.src, self._at(node), strict=True)
            if not (source.is_const and source.arg == 0)
        ]
        first = nonzero[0]
        is_power = first is not None and first.kind is Kind.EXPONENTIAL
        return first if first is not None and is_power and len(set(nonzero)) == 1 else OTHER

    def chosen(self, node: UOp) -> Dependence:
        """A WHERE whose condition does not depend on the maximum."""
        if node.src[0] in self.found:
            return OTHER
        return self.added(node.replace(src=node.src[1:], op=Ops.ADD))

    def multiplied(self, node: UOp) -> Dependence:
        left, right = self._at(node)
        if left is None or right is None:
            one, other = (left, node.src[1]) if right is None else (right, node.src[0])
            return _scaled(one or OTHER, other)
        is_alike = left.kind is right.kind is Kind.EXPONENTIAL and left[2:] == right[2:]
        return left._replace(rate=left.rate + right.rate) if is_alike else OTHER

    def summed(self, node: UOp) -> Dependence:
        """Record a sum to carry; values derived from it are only known after the last block."""
        found = self.found.get(node.src[0])
        if found is not None and found.kind is Kind.EXPONENTIAL and found.loop in node.bound:
            if node.arg is Ops.ADD and all(
                r not in row.ranges for r in node.bound for row in found.rows
            ):
                self.sums[node] = found
        return OTHER

    def divided(self, node: UOp) -> Dependence:
        left, right = self._at(node)
        return (
            left if left is not None and right is None and left.kind is Kind.EXPONENTIAL else OTHER
        )

    def raised(self, node: UOp) -> Dependence:
        (found,) = self._at(node)
        if found is None or found.kind is not Kind.SHIFTED or found.rate <= 0:
            return OTHER
        return found._replace(kind=Kind.EXPONENTIAL)

    def same(self, node: UOp) -> Dependence:
        """Conversions, and writes to and reads from scratch."""
        is_float = node.dtype.kind == "float"
        return (self.found.get(node.src[0]) or OTHER) if is_float else OTHER

    def read(self, node: UOp) -> Dependence:
        """INDEX: rename the maximum's ranges from the row written to the row read."""
        stage = node.src[0]
        found = self.found.get(stage)
        if found is None or stage.op is not Ops.STAGE or any(s in self.found for s in node.src[1:]):
            return OTHER
        written = stage.scratch_indices
        indices = {w: r for w, r in zip(written, node.indices, strict=True) if w.op is Ops.RANGE}
        rows = tuple([reindex(row, indices) for row in found.rows])
        loop = None if found.loop is None else indices.get(found.loop, found.loop)
        return found._replace(rows=rows, loop=loop)


def _scaled(found: Dependence, other: UOp) -> Dependence:
    if found.kind is Kind.EXPONENTIAL:
        return found
    if found.kind is Kind.SHIFTED and other.is_const:
        return found._replace(rate=found.rate * float(other.arg))
    return OTHER


RULES: dict[Ops, Callable[[_DependenceAnalysis, UOp], Dependence]] = {
    Ops.SUB: _DependenceAnalysis.subtracted,
    Ops.ADD: _DependenceAnalysis.added,
    Ops.WHERE: _DependenceAnalysis.chosen,
    Ops.MUL: _DependenceAnalysis.multiplied,
    Ops.FDIV: _DependenceAnalysis.divided,
    Ops.EXP2: _DependenceAnalysis.raised,
    Ops.CAST: _DependenceAnalysis.same,
    Ops.STAGE: _DependenceAnalysis.same,
    Ops.LOAD: _DependenceAnalysis.same,
    Ops.INDEX: _DependenceAnalysis.read,
    Ops.REDUCE: _DependenceAnalysis.summed,
}
