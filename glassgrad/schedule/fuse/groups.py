"""Clusters: statements that share outer loops, and the order in which they can run."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from math import prod

from glassgrad.base.fast_dataclasses import field, slotted
from glassgrad.ir.linear import ZERO
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.schedule.graph.write_hazards import older_versions
from glassgrad.schedule.kernels.movement import Indices
from glassgrad.schedule.materialize.statement import Statement

Loop = dict[Statement, int]  # for each statement of a cluster, which of its axes this loop is

SEARCH_LIMIT = 256  # clusters looked at when asking whether something lies between two


@slotted
class Cluster:
    """Statements in order, the loops that all of them share, and who must come before and after.

    `rows` is the loop of those that are computed a block of rows at a time, if others sum over it.
    `first` is the place of its first statement in an order in which the statements could run, and
    `last` the last place of any statement that runs with it or must run before: it never falls from
    a cluster to one that waits for it.
    """

    statements: list[Statement]
    outer: list[Loop]
    before: dict[Cluster, None] = field(default_factory=dict)
    after: dict[Cluster, None] = field(default_factory=dict)
    rows: Loop | None = None
    first: int = 0
    last: int = 0

    @property
    def outer_size(self) -> int:
        return prod(loop_size(loop) for loop in self.outer)


def loop_size(loop: Loop) -> int:
    statement, axis = next(iter(loop.items()))
    return statement.axes[axis].size


def single(statement: Statement) -> Cluster:
    loops = [{statement: axis} for axis, r in enumerate(statement.axes) if r is not ZERO]
    return Cluster([statement], scanned_last(loops), first=statement.order)


def is_scanned(loop: Loop) -> bool:
    """Does a statement run along this loop in order?"""
    return any(statement.scanned == axis for statement, axis in loop.items())


def scanned_last(loops: list[Loop]) -> list[Loop]:
    """What is carried from step to step lives in registers: all other loops are around."""
    return sorted(loops, key=is_scanned)


def precede(one: Cluster, two: Cluster) -> None:
    if one is not two:
        one.after[two] = None
        two.before[one] = None


def crossing(one: Cluster, two: Cluster) -> list[tuple[Statement, Statement, Indices]]:
    """Every read of a value of cluster one by cluster two."""
    values = {statement.node: statement for statement in one.statements}
    return [
        (values[value], reader, indices)
        for reader in two.statements
        for value, places in reader.reads.items()
        if value in values
        for indices in places
    ]


def link(kept: dict[UOp, Statement], home: dict[Statement, Cluster]) -> None:
    for statement in kept.values():
        for value in statement.reads:
            if value in kept:
                precede(home[kept[value]], home[statement])
    for earlier, later in (*effect_edges(kept), *twin_edges(kept)):
        precede(home[earlier], home[later])


def twin_edges(kept: dict[UOp, Statement]) -> Iterable[tuple[Statement, Statement]]:
    """(earlier, later): a twin waits for what else its first reader needs."""
    for reader in kept.values():
        for twin in [kept[node] for node in reader.twins.values()]:
            for value in reader.reads:
                if twin.order == reader.order and value in kept and not kept[value].is_twin:
                    yield kept[value], twin


def effect_edges(kept: dict[UOp, Statement]) -> Iterable[tuple[Statement, Statement]]:
    """(earlier, later): old contents are read before the ASSIGN that replaces them."""
    writers: dict[UOp, list[Statement]] = {}
    for statement in kept.values():
        if statement.node.op is Ops.ASSIGN:
            for version in older_versions(statement.node):
                writers.setdefault(version, []).append(statement)
    for statement in kept.values():
        for value in statement.reads:
            for writer in writers.get(value, ()):
                if writer is not statement:
                    yield statement, writer
    for version, later in writers.items():
        if version in kept:
            for writer in later:
                yield kept[version], writer


def unlink(clusters: Iterable[Cluster]) -> None:
    """Nobody asks any more what comes before what: without cycles they are gone at once, and the
    collector finds nothing to walk over.
    """
    for cluster in clusters:
        cluster.before.clear()
        cluster.after.clear()


def stuck_versions(kept: dict[UOp, Statement]) -> set[UOp]:
    """Old contents that somebody needs who has to wait for their replacement: they need a copy."""
    effects = list(effect_edges(kept))
    if not effects:
        return set()
    home = {s: single(s) for s in kept.values()}
    link(kept, home)
    free = set(run_order(dict.fromkeys(home.values())))
    unlink(home.values())
    return {
        version
        for reader, writer in effects
        if home[reader] not in free and home[writer] not in free
        for version in older_versions(writer.node)
        if version in reader.reads
    }


def leads_to(one: Cluster, two: Cluster) -> bool:
    return two in one.after or something_between(one, two)


def something_between(one: Cluster, two: Cluster) -> bool:
    """Does another cluster have to run after `one` and before `two`?"""
    stack = [cluster for cluster in one.after if cluster is not two]
    seen = set(stack)
    while stack:
        cluster = stack.pop()
        if len(seen) > SEARCH_LIMIT:
            return True
        for follower in cluster.after:
            if follower is two:
                return True
            if follower not in seen and follower.last <= two.last:
                seen.add(follower)
                stack.append(follower)
    return False


def take_in(one: Cluster, two: Cluster) -> None:
    """All that cluster two does becomes a part of cluster one; nothing may lie between them."""
    one.statements = one.statements + two.statements
    one.first, one.last = min(one.first, two.first), max(one.last, two.last)
    for cluster in two.before:
        del cluster.after[two]
        precede(cluster, one)
    for cluster in two.after:
        del cluster.before[two]
        precede(one, cluster)
    _raise_followers(one)


def _raise_followers(cluster: Cluster) -> None:
    """Whoever waits for a cluster that has grown, directly or not, cannot end before it does."""
    stack = [cluster]
    while stack:
        earlier = stack.pop()
        for follower in earlier.after:
            if follower.last < cluster.last:
                follower.last = cluster.last
                stack.append(follower)


def in_order(clusters: dict[Cluster, None]) -> list[Cluster]:
    ordered = run_order(clusters)
    assert len(ordered) == len(clusters), "clusters wait for each other"
    return ordered


def run_order(clusters: dict[Cluster, None]) -> list[Cluster]:
    """Each cluster after those it needs, in program order; not those that never can run."""
    waiting = {cluster: len(cluster.before) for cluster in clusters}
    ready = [(c.first, id(c), c) for c, count in waiting.items() if not count]
    heapify(ready)
    ordered: list[Cluster] = []
    while ready:
        _, _, cluster = heappop(ready)
        ordered.append(cluster)
        for follower in cluster.after:
            waiting[follower] -= 1
            if not waiting[follower]:
                heappush(ready, (follower.first, id(follower), follower))
    return ordered


def order_statements(clusters: list[Cluster], kept: dict[UOp, Statement]) -> None:
    """Within a kernel too: values before readers, old contents read before they are replaced."""
    edges = [(kept[v], s) for s in kept.values() for v in s.reads if v in kept]
    edges += effect_edges(kept)
    later: dict[Statement, list[Statement]] = {}
    for one, two in edges:
        later.setdefault(one, []).append(two)
    for cluster in clusters:
        statements = sorted(cluster.statements, key=lambda s: s.order)
        has_effects = any(s.node.op is Ops.ASSIGN for s in statements)
        cluster.statements = _sorted(statements, later) if has_effects else statements


def _sorted(
    statements: list[Statement], later: dict[Statement, list[Statement]]
) -> list[Statement]:
    mates = set(statements)
    waiting = dict.fromkeys(statements, 0)
    for statement in statements:
        for follower in later.get(statement, ()):
            if follower in mates:
                waiting[follower] += 1
    ordered: list[Statement] = []
    while waiting:
        free = next(s for s, count in waiting.items() if not count)
        del waiting[free]
        ordered.append(free)
        for follower in later.get(free, ()):
            if follower in waiting:
                waiting[follower] -= 1
    return ordered
