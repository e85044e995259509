"""Fusion groups: statements that share outer loops, and the paths between groups."""

from __future__ import annotations

from math import prod

from glassgrad.base.fast_dataclasses import field, slotted
from glassgrad.ir.linear import ZERO
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
