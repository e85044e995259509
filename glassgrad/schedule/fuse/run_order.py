"""Run order: values before readers, reads before overwrites, of statements and fusion groups.

A buffer version is read before the ASSIGN that replaces it. Where no order allows that, the reader
gets a copy (schedule/graph/copies_before_writes.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.schedule.fuse.groups import FusionGroup, add_dependency, singleton
from glassgrad.schedule.graph.copies_before_writes import previous_versions
from glassgrad.schedule.materialize.statement import Statement


def add_dependencies(
    statements: dict[UOp, Statement], group_of: dict[Statement, FusionGroup]
) -> None:
    for statement in statements.values():
        for value in statement.reads:
            if value in statements:
                add_dependency(group_of[statements[value]], group_of[statement])
    for earlier, later in (*anti_dependences(statements), *rematerialization_edges(statements)):
        add_dependency(group_of[earlier], group_of[later])


def rematerialization_edges(
    statements: dict[UOp, Statement],
) -> Iterable[tuple[Statement, Statement]]:
    """(earlier, later): a rematerialized statement waits for the other inputs of its first
    reader.
    """
    for reader in statements.values():
        for copy in [statements[node] for node in reader.rematerialized.values()]:
            for value in reader.reads:
                if (
                    copy.order == reader.order
                    and value in statements
                    and not statements[value].is_rematerialized
                ):
                    yield statements[value], copy


def anti_dependences(statements: dict[UOp, Statement]) -> Iterable[tuple[Statement, Statement]]:
    """(earlier, later): previous contents are read before the ASSIGN that replaces them."""
    writers: dict[UOp, list[Statement]] = {}
    for statement in statements.values():
        if statement.node.op is Ops.ASSIGN:
            for version in previous_versions(statement.node):
                writers.setdefault(version, []).append(statement)
    for statement in statements.values():
        for value in statement.reads:
            for writer in writers.get(value, ()):
                if writer is not statement:
                    yield statement, writer
    for version, later in writers.items():
        if version in statements:
            for writer in later:
                yield statements[version], writer


def clear_dependencies(groups: Iterable[FusionGroup]) -> None:
    """Break the reference cycles between groups, so that they are freed without the garbage
    collector.
    """
    for group in groups:
        group.before.clear()
        group.after.clear()


def deadlocked_versions(statements: dict[UOp, Statement]) -> set[UOp]:
    """Buffer versions whose reader must wait for their overwriting: these need a copy."""
    edges = list(anti_dependences(statements))
    if not edges:
        return set()
    group_of = {s: singleton(s) for s in statements.values()}
    add_dependencies(statements, group_of)
    runnable = set(run_order(dict.fromkeys(group_of.values())))
    clear_dependencies(group_of.values())
    return {
        version
        for reader, writer in edges
        if group_of[reader] not in runnable and group_of[writer] not in runnable
        for version in previous_versions(writer.node)
        if version in reader.reads
    }


def order_all(groups: dict[FusionGroup, None]) -> list[FusionGroup]:
    """All groups in run order; no group may wait for itself."""
    ordered = run_order(groups)
    assert len(ordered) == len(groups), "cyclic dependency between fusion groups"
    return ordered


def run_order(groups: dict[FusionGroup, None]) -> list[FusionGroup]:
    """Each group after those it depends on, in program order; without those in a cycle."""
    waiting = {group: len(group.before) for group in groups}
    number = {group: i for i, group in enumerate(groups)}  # decides between equal positions
    ready = [(group.first, number[group], group) for group, count in waiting.items() if not count]
    heapify(ready)
    ordered: list[FusionGroup] = []
    while ready:
        _, _, group = heappop(ready)
        ordered.append(group)
        for follower in group.after:
            waiting[follower] -= 1
            if not waiting[follower]:
                heappush(ready, (follower.first, number[follower], follower))
    return ordered


def sort_statements(groups: list[FusionGroup], statements: dict[UOp, Statement]) -> None:
    """Order the statements of each group: values before readers, reads before overwrites."""
    edges = [(statements[v], s) for s in statements.values() for v in s.reads if v in statements]
    edges += anti_dependences(statements)
    followers: dict[Statement, list[Statement]] = {}
    for earlier, later in edges:
        followers.setdefault(earlier, []).append(later)
    for group in groups:
        in_program_order = sorted(group.statements, key=lambda s: s.order)
        has_writes = any(s.node.op is Ops.ASSIGN for s in in_program_order)
        group.statements = _sorted(in_program_order, followers) if has_writes else in_program_order


def _sorted(
    statements: list[Statement], later: dict[Statement, list[Statement]]
) -> list[Statement]:
    members = set(statements)
    waiting = dict.fromkeys(statements, 0)
    for statement in statements:
        for follower in later.get(statement, ()):
            if follower in members:
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
