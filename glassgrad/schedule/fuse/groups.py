"""Fusion groups: statements that share outer loops, and the order in which they can run."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from math import prod

from glassgrad.base.fast_dataclasses import field, slotted
from glassgrad.ir.linear import ZERO
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.schedule.graph.copies_before_writes import previous_versions
from glassgrad.schedule.materialize.statement import Statement
from glassgrad.schedule.movement import Indices

Loop = dict[Statement, int]  # statement -> which of its axes this loop is

MAX_SEARCHED_GROUPS = 256  # groups visited in a path search; beyond, a path is assumed


@slotted
class FusionGroup:
    """Statements in order, the loops that all of them share, and the groups before and after.

    `summed_rows` is the loop over rows that are computed in blocks because fused sums run over
    them. `first` is the position of its first statement in a valid order of all statements. `last`
    is the largest position of any statement that runs with it or before it; it never decreases
    along a dependency.
    """

    statements: list[Statement]
    outer: list[Loop]
    before: dict[FusionGroup, None] = field(default_factory=dict)
    after: dict[FusionGroup, None] = field(default_factory=dict)
    summed_rows: Loop | None = None
    first: int = 0
    last: int = 0

    @property
    def outer_size(self) -> int:
        return prod(loop_size(loop) for loop in self.outer)


def loop_size(loop: Loop) -> int:
    statement, axis = next(iter(loop.items()))
    return statement.axes[axis].size


def singleton(statement: Statement) -> FusionGroup:
    loops = [{statement: axis} for axis, r in enumerate(statement.axes) if r is not ZERO]
    return FusionGroup([statement], with_scans_last(loops), first=statement.order)


def is_scanned(loop: Loop) -> bool:
    """True if a statement scans along this loop."""
    return any(statement.scanned == axis for statement, axis in loop.items())


def with_scans_last(loops: list[Loop]) -> list[Loop]:
    """The loops with scanned ones innermost, so that carried values stay in registers."""
    return sorted(loops, key=is_scanned)


def add_dependency(first_group: FusionGroup, second_group: FusionGroup) -> None:
    if first_group is not second_group:
        first_group.after[second_group] = None
        second_group.before[first_group] = None


def crossing_reads(
    first_group: FusionGroup, second_group: FusionGroup
) -> list[tuple[Statement, Statement, Indices]]:
    """Every read by the second group of a value of the first, as (writer, reader, indices)."""
    values = {statement.node: statement for statement in first_group.statements}
    return [
        (values[value], reader, indices)
        for reader in second_group.statements
        for value, accesses in reader.reads.items()
        if value in values
        for indices in accesses
    ]


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


def reaches(first_group: FusionGroup, second_group: FusionGroup) -> bool:
    return second_group in first_group.after or has_path_between(first_group, second_group)


def has_path_between(first_group: FusionGroup, second_group: FusionGroup) -> bool:
    """True if another group must run after the first and before the second."""
    stack = [group for group in first_group.after if group is not second_group]
    seen = set(stack)
    while stack:
        group = stack.pop()
        if len(seen) > MAX_SEARCHED_GROUPS:
            return True
        for follower in group.after:
            if follower is second_group:
                return True
            if follower not in seen and follower.last <= second_group.last:
                seen.add(follower)
                stack.append(follower)
    return False


def absorb(first_group: FusionGroup, second_group: FusionGroup) -> None:
    """Move everything of the second group into the first; no other group may lie between them."""
    first_group.statements = first_group.statements + second_group.statements
    first_group.first, first_group.last = (
        min(first_group.first, second_group.first),
        max(first_group.last, second_group.last),
    )
    for group in second_group.before:
        del group.after[second_group]
        add_dependency(group, first_group)
    for group in second_group.after:
        del group.before[second_group]
        add_dependency(first_group, group)
    _raise_last_of_followers(first_group)


def _raise_last_of_followers(group: FusionGroup) -> None:
    """Raise `last` of all groups that depend on a group that has grown."""
    stack = [group]
    while stack:
        earlier = stack.pop()
        for follower in earlier.after:
            if follower.last < group.last:
                follower.last = group.last
                stack.append(follower)


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
