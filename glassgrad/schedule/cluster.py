"""Statements -> Clusters: those that share outer loops become one kernel, to save traffic."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import prod

from glassgrad.ir.linear import ZERO
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp
from glassgrad.schedule.effects import older_versions
from glassgrad.schedule.fates import Statement
from glassgrad.schedule.movement import Indices

Loop = dict[Statement, int]  # for each statement of a cluster, which of its axes this loop is

FEW = 16  # fewer outer iterations than this leave cores and registers idle
SMALL_BYTES = 1 << 16  # below this, nobody minds one core
MOST_STATEMENTS = 32
MOST_OPS = 1000
SEARCH_LIMIT = 256  # clusters looked at when asking whether something lies between two


@dataclass(eq=False, slots=True)
class Cluster:
    """Statements in order, the loops that all of them share, and who must come before and after.

    `first` and `last` are places in an order in which the statements could run: whatever must lie
    between two clusters lies between these.
    """

    statements: list[Statement]
    outer: list[Loop]
    before: dict[Cluster, None] = field(default_factory=dict)
    after: dict[Cluster, None] = field(default_factory=dict)
    first: int = 0
    last: int = 0

    @property
    def outer_size(self) -> int:
        return prod(_loop_size(loop) for loop in self.outer)


def _loop_size(loop: Loop) -> int:
    statement, axis = next(iter(loop.items()))
    return statement.axes[axis].size


def make_clusters(kept: dict[UOp, Statement], target: Target) -> list[Cluster]:
    """One cluster per kernel, in an order in which they can run."""
    home = {s: single(s) for s in kept.values()}
    _link(kept, home)
    for rank, cluster in enumerate(_in_order(dict.fromkeys(home.values()))):
        cluster.first = cluster.last = rank
    for producer, consumer in _edges_by_bytes(kept):
        one, two = home[producer], home[consumer]
        if one is two:
            continue
        shared = _shared_loops(one, two)
        if _may_merge(one, two, shared, target) and not _something_between(one, two):
            _merge(one, two, shared, home)
    _merge_siblings(kept, home, target)
    clusters = _in_order(dict.fromkeys(home.values()))
    _order_statements(clusters, kept)
    return clusters


def _merge_siblings(
    kept: dict[UOp, Statement], home: dict[Statement, Cluster], target: Target
) -> None:
    """Clusters that walk through the same large value in the same way become one."""
    seen: dict[tuple[UOp, Indices, Indices, Indices], Statement] = {}
    for statement in kept.values():
        for value, places in statement.reads.items():
            if prod(value.shape) * value.dtype.itemsize < SMALL_BYTES:
                continue
            for indices in places:
                key = (value, indices, statement.axes, statement.reduced)
                other = seen.setdefault(key, statement)
                one, two = home[other], home[statement]
                if one is not two:
                    shared = _same_loops(one, two, other, statement)
                    if shared is not None and _may_join(one, two, shared, target):
                        _merge(one, two, shared, home)


def _same_loops(
    one: Cluster, two: Cluster, first: Statement, second: Statement
) -> list[Loop] | None:
    """The outer loops of two clusters, paired by the axes of these two statements."""
    pairs = {loop[first]: loop for loop in one.outer}
    others = {loop[second]: loop for loop in two.outer}
    if pairs.keys() != others.keys() or one.outer_size < FEW:
        return None
    return [{**pairs[axis], **others[axis]} for axis in pairs]


def _may_join(one: Cluster, two: Cluster, shared: list[Loop], target: Target) -> bool:
    statements = one.statements + two.statements
    if any(s.is_contraction or s.is_scatter or s.node.op is Ops.COPY for s in statements):
        return False
    if _is_too_large(one, two) or _parameters(one, two) > target.max_params:
        return False
    if not _effects_allow(one, two, shared):
        return False
    return not _leads_to(one, two) and not _leads_to(two, one)


def _leads_to(one: Cluster, two: Cluster) -> bool:
    return two in one.after or _something_between(one, two)


def single(statement: Statement) -> Cluster:
    loops = [{statement: axis} for axis, r in enumerate(statement.axes) if r is not ZERO]
    return Cluster([statement], loops, first=statement.node.number)


def _link(kept: dict[UOp, Statement], home: dict[Statement, Cluster]) -> None:
    for statement in kept.values():
        for value in statement.reads:
            if value in kept:
                _precede(home[kept[value]], home[statement])
    for reader, writer in effect_edges(kept):
        _precede(home[reader], home[writer])


def _precede(one: Cluster, two: Cluster) -> None:
    if one is not two:
        one.after[two] = None
        two.before[one] = None


def stuck_versions(kept: dict[UOp, Statement]) -> set[UOp]:
    """Old contents that somebody needs who has to wait for their replacement: they need a copy."""
    effects = list(effect_edges(kept))
    if not effects:
        return set()
    home = {s: single(s) for s in kept.values()}
    _link(kept, home)
    free = set(_run(dict.fromkeys(home.values())))
    return {
        version
        for reader, writer in effects
        if home[reader] not in free and home[writer] not in free
        for version in older_versions(writer.node)
        if version in reader.reads
    }


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


def _edges_by_bytes(kept: dict[UOp, Statement]) -> list[tuple[Statement, Statement]]:
    edges = [
        (kept[value], statement)
        for statement in kept.values()
        for value in statement.reads
        if value in kept
    ]
    return sorted(edges, key=lambda e: (-e[0].numel * e[0].node.dtype.itemsize, e[1].node.number))


def _crossing(one: Cluster, two: Cluster) -> list[tuple[Statement, Statement, Indices]]:
    """Every read of a value of cluster one by cluster two."""
    values = {statement.node: statement for statement in one.statements}
    return [
        (values[value], reader, indices)
        for reader in two.statements
        for value, places in reader.reads.items()
        if value in values
        for indices in places
    ]


def _shared_loops(one: Cluster, two: Cluster) -> list[Loop]:
    """The pairs of outer loops that are the same in every crossing read, joined."""
    reads = _crossing(one, two)
    joined: list[Loop] = []
    for later in two.outer:
        for earlier in one.outer:
            if _loop_size(earlier) == _loop_size(later) and all(
                indices[earlier[writer]] is reader.axes[later[reader]]
                for writer, reader, indices in reads
            ):
                joined.append({**earlier, **later})
                break
    return joined


def _may_merge(one: Cluster, two: Cluster, shared: list[Loop], target: Target) -> bool:
    """Is one kernel better than two, given the loops that would be shared?"""
    if _parameters(one, two) > target.max_params:
        return False
    if _is_too_large(one, two):
        return False
    if any(s.node.op is Ops.COPY or s.is_scatter for s in one.statements + two.statements):
        return False
    if not _effects_allow(one, two, shared):
        return False
    if len(shared) == len(one.outer) == len(two.outer):
        return True
    if any(s.is_contraction for s in one.statements + two.statements):
        return False
    size = prod(_loop_size(loop) for loop in shared)
    largest = max(_bytes(s) for s in one.statements + two.statements)
    if size < FEW and largest > SMALL_BYTES and target.cores > 1:
        return False
    if _inner_is_strided(one, shared) or _inner_is_strided(two, shared):
        return False
    rows = sum(_bytes(s) for s in one.statements if not s.is_stored)
    return rows / max(size, 1) <= target.l2_bytes / 2


def _is_too_large(one: Cluster, two: Cluster) -> bool:
    """Would the kernel take too long to compile?"""
    statements = one.statements + two.statements
    return len(statements) > MOST_STATEMENTS or sum(s.ops for s in statements) > MOST_OPS


def _bytes(statement: Statement) -> int:
    return statement.loops * statement.node.dtype.itemsize


def _parameters(one: Cluster, two: Cluster) -> int:
    values: set[UOp] = set()
    for statement in one.statements + two.statements:
        values.add(statement.node)
        values.update(statement.reads)
    return len(values)


def _effects_allow(one: Cluster, two: Cluster, shared: list[Loop]) -> bool:
    """A buffer that is overwritten is read only by the iteration that overwrites it."""
    if any(s.node.op is Ops.ASSIGN and s.node.arg for s, _, _ in _crossing(one, two)):
        return False  # the axes of such a statement are not those of the buffer
    statements = one.statements + two.statements
    for writer in statements:
        if writer.node.op is not Ops.ASSIGN:
            continue
        for reader in statements:
            for version in older_versions(writer.node):
                for indices in reader.reads.get(version, ()):
                    if reader is not writer and not _same_place(writer, reader, indices, shared):
                        return False
    return True


def _same_place(writer: Statement, reader: Statement, indices: Indices, shared: list[Loop]) -> bool:
    pairs = {loop[writer]: reader.axes[loop[reader]] for loop in shared}
    return not writer.node.arg and all(
        index is pairs.get(axis, ZERO) for axis, index in enumerate(indices)
    )


def _inner_is_strided(cluster: Cluster, shared: list[Loop]) -> bool:
    """Would some value's last axis be a shared loop while others are inner ones?"""
    for statement in cluster.statements:
        axes = {loop[statement] for loop in shared}
        inner = [axis for axis, r in enumerate(statement.axes) if r is not ZERO]
        if inner and inner[-1] in axes and len(axes) < len(inner):
            return True
    return False


def _something_between(one: Cluster, two: Cluster) -> bool:
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
            if follower not in seen and follower.first < two.last:
                seen.add(follower)
                stack.append(follower)
    return False


def _merge(one: Cluster, two: Cluster, shared: list[Loop], home: dict[Statement, Cluster]) -> None:
    """`one` takes in `two`."""
    one.statements = one.statements + two.statements
    one.outer = shared
    one.first, one.last = min(one.first, two.first), max(one.last, two.last)
    for statement in two.statements:
        home[statement] = one
    for cluster in two.before:
        del cluster.after[two]
        _precede(cluster, one)
    for cluster in two.after:
        del cluster.before[two]
        _precede(one, cluster)
    one.after.pop(two, None)


def _order_statements(clusters: list[Cluster], kept: dict[UOp, Statement]) -> None:
    """Within a kernel too: values before readers, old contents read before they are replaced."""
    edges = [(kept[v], s) for s in kept.values() for v in s.reads if v in kept]
    edges += effect_edges(kept)
    later: dict[Statement, list[Statement]] = {}
    for one, two in edges:
        later.setdefault(one, []).append(two)
    for cluster in clusters:
        statements = sorted(cluster.statements, key=lambda s: s.node.number)
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


def _in_order(clusters: dict[Cluster, None]) -> list[Cluster]:
    ordered = _run(clusters)
    assert len(ordered) == len(clusters), "clusters wait for each other"
    return ordered


def _run(clusters: dict[Cluster, None]) -> list[Cluster]:
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
