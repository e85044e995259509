"""A maximum -> the sums that are relative to it: of exp(s - m)·x, over the axis that m is of.

If m grows by d, each of these sums is as it was, times exp(-d). So they can be known for a part of
the axis and the maximum of that part, and grow with the next one.
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
from glassgrad.loops.moves.pack import reading_order
from glassgrad.loops.nest import blocks, blocks_of, nodes_of
from glassgrad.loops.opts import IllegalMove, require


class Way(Enum):
    """How a value depends on the maximum."""

    MAXIMUM = "it is the maximum"
    DISTANCE = "rate · (s - maximum), for the s that it is the maximum of"
    POWER = "something · 2 ** (rate · (s - maximum))"
    OTHER = "in some other way"


class Relation(NamedTuple):
    """`rows` is where the maximum is that is meant: what stands for the ranges it depends on.
    `along` is the loop over the axis, where there is one.
    """

    way: Way
    rate: float = 1.0
    rows: tuple[UOp, ...] = ()
    along: UOp | None = None


OTHER = Relation(Way.OTHER)


@frozen
class Family:
    """Everything along the axis of a maximum: loops, scratch with its dimension, and sums."""

    maximum: UOp
    rows: tuple[UOp, ...]  # what the maximum depends on, inside of the shared loops
    loops: frozenset[UOp]
    stages: Mapping[UOp, int]
    sums: Mapping[UOp, Relation]
    powers: frozenset[UOp]  # the scratch that is relative to the maximum


def relative_sums(nest: Nest, axis: UOp) -> Family:
    """The maximum of this axis, and what can go by in blocks with it; else an IllegalMove."""
    maxima = [node for node in blocks(nest, axis) if node.op is Ops.REDUCE]
    if len(maxima) != 1 or maxima[0].arg is not Ops.MAX or maxima[0].bound != (axis,):
        raise IllegalMove("this is not the axis of one maximum")
    (maximum,) = maxima
    rows = tuple(reading_order(nest, maximum.ranges - set(nest.outer)))
    known = _Relations(maximum, rows)
    known.find(nodes_of(nest.body))
    require(bool(known.sums), "no sum is relative to this maximum")
    loops, stages = along(nest, {axis, *[r.along for r in known.sums.values() if r.along]})
    for block in blocks_of(nest.body):
        is_member = block is maximum or block in known.sums or block in stages
        is_apart = loops.isdisjoint(block.bound)
        require(is_member or is_apart, "more than sums are made of this axis")
        is_odd = is_member and len(loops.intersection(block.bound)) != 1
        require(not is_odd, "something goes along this axis twice")
        require(is_apart or known.found.get(block.src[0]) != OTHER, "a sum needs another sum")
    powers = [s for s in stages if (found := known.found.get(s)) and found.way is Way.POWER]
    return Family(maximum, rows, loops, stages, known.sums, frozenset(powers))


def along(nest: Nest, found: set[UOp]) -> tuple[frozenset[UOp], dict[UOp, int]]:
    """The loops that go along the axis of these, and the scratch in which a dimension does."""
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
                require(one_way and is_plain, "scratch is not read as it is written")
                is_done = is_done and {read, written} <= loops
                loops |= {read, written}
    for r in loops:
        is_plain = r.src[0].is_const and r.kind in (AxisKind.LOOP, AxisKind.REDUCE)
        require(is_plain and r not in nest.outer, "an axis that is cut already")
        require(r.size == size, "only a part of the axis is read")
    return frozenset(loops), stages


# ---------------------------------------------------------------------- how values depend on it


class _Relations:
    """A walk over all nodes, sources first. What does not depend on the maximum has no relation."""

    def __init__(self, maximum: UOp, rows: tuple[UOp, ...]) -> None:
        self.maximum = maximum
        self.rows = rows
        self.found: dict[UOp, Relation] = {}
        self.sums: dict[UOp, Relation] = {}

    def find(self, nodes: Iterable[UOp]) -> None:
        for node in nodes:
            if node is self.maximum:
                self.found[node] = Relation(Way.MAXIMUM, 1.0, self.rows)
            elif not self.found.keys().isdisjoint(node.src):
                rule = RULES.get(node.op)
                self.found[node] = OTHER if rule is None else rule(self, node)

    def _at(self, node: UOp) -> list[Relation | None]:
        return [self.found.get(source) for source in node.src]

    def subtracted(self, node: UOp) -> Relation:
        """s - maximum; or two powers"""
        left, right = self._at(node)
        if left is not None or right is None or right.way is not Way.MAXIMUM:
            return self.added(node)
        (axis,) = self.maximum.bound
        places = dict(zip(self.rows, right.rows, strict=True))
        for r in node.src[0].ranges:
            if r.size == axis.size:
                same = reindex(self.maximum.src[0], {**places, axis: r})
                if same.cast(node.dtype) is node.src[0]:
                    return Relation(Way.DISTANCE, 1.0, right.rows, r)
        return OTHER

    def added(self, node: UOp) -> Relation:
        """Two powers alike, or one of them beside zeros: x if it is there, else 0."""
        there = [
            found
            for source, found in zip(node.src, self._at(node), strict=True)
            if not (source.is_const and source.arg == 0)
        ]
        first = there[0]
        is_power = first is not None and first.way is Way.POWER
        return first if first is not None and is_power and len(set(there)) == 1 else OTHER

    def chosen(self, node: UOp) -> Relation:
        """The same where the condition has nothing to do with the maximum."""
        if node.src[0] in self.found:
            return OTHER
        return self.added(node.replace(src=node.src[1:], op=Ops.ADD))

    def multiplied(self, node: UOp) -> Relation:
        left, right = self._at(node)
        if left is None or right is None:
            one, other = (left, node.src[1]) if right is None else (right, node.src[0])
            return _times(one or OTHER, other)
        is_alike = left.way is right.way is Way.POWER and left[2:] == right[2:]
        return left._replace(rate=left.rate + right.rate) if is_alike else OTHER

    def summed(self, node: UOp) -> Relation:
        """One of the sums that are wanted; what is made of it is known when all blocks are."""
        found = self.found.get(node.src[0])
        if found is not None and found.way is Way.POWER and found.along in node.bound:
            if node.arg is Ops.ADD and all(
                r not in row.ranges for r in node.bound for row in found.rows
            ):
                self.sums[node] = found
        return OTHER

    def divided(self, node: UOp) -> Relation:
        left, right = self._at(node)
        return left if left is not None and right is None and left.way is Way.POWER else OTHER

    def raised(self, node: UOp) -> Relation:
        (found,) = self._at(node)
        if found is None or found.way is not Way.DISTANCE or found.rate <= 0:
            return OTHER
        return found._replace(way=Way.POWER)

    def same(self, node: UOp) -> Relation:
        """A conversion, and what is put into scratch and read there."""
        is_float = node.dtype.kind == "float"
        return (self.found.get(node.src[0]) or OTHER) if is_float else OTHER

    def read(self, node: UOp) -> Relation:
        """INDEX: the maximum of the row that is read, where that of the row written was meant."""
        stage = node.src[0]
        found = self.found.get(stage)
        if found is None or stage.op is not Ops.STAGE or any(s in self.found for s in node.src[1:]):
            return OTHER
        written = stage.places
        places = {w: r for w, r in zip(written, node.indices, strict=True) if w.op is Ops.RANGE}
        rows = tuple([reindex(row, places) for row in found.rows])
        along = None if found.along is None else places.get(found.along, found.along)
        return found._replace(rows=rows, along=along)


def _times(found: Relation, other: UOp) -> Relation:
    if found.way is Way.POWER:
        return found
    if found.way is Way.DISTANCE and other.is_const:
        return found._replace(rate=found.rate * float(other.arg))
    return OTHER


RULES: dict[Ops, Callable[[_Relations, UOp], Relation]] = {
    Ops.SUB: _Relations.subtracted,
    Ops.ADD: _Relations.added,
    Ops.WHERE: _Relations.chosen,
    Ops.MUL: _Relations.multiplied,
    Ops.FDIV: _Relations.divided,
    Ops.EXP2: _Relations.raised,
    Ops.CAST: _Relations.same,
    Ops.STAGE: _Relations.same,
    Ops.LOAD: _Relations.same,
    Ops.INDEX: _Relations.read,
    Ops.REDUCE: _Relations.summed,
}
