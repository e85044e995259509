"""Statements -> fusion groups: statements that share outer loops become one kernel."""

from __future__ import annotations

from math import inf, prod

from glassgrad.ir.linear import ZERO
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp
from glassgrad.schedule.fuse.attention_backward import may_fuse_backward, summed_rows
from glassgrad.schedule.fuse.groups import (
    FusionGroup,
    Loop,
    absorb,
    crossing_reads,
    has_path_between,
    loop_size,
    singleton,
    with_scans_last,
)
from glassgrad.schedule.fuse.profitability import may_fuse, may_fuse_siblings
from glassgrad.schedule.fuse.row_block_legality import (
    MIN_OUTER_ITERATIONS,
    SINGLE_CORE_BYTES,
    has_contraction,
    is_wide_product,
)
from glassgrad.schedule.fuse.run_order import add_dependencies, order_all, sort_statements
from glassgrad.schedule.materialize.statement import Statement
from glassgrad.schedule.movement import Indices

MAX_SIBLINGS = 4  # groups with equal reads that a later one is compared with


def make_fusion_groups(statements: dict[UOp, Statement], target: Target) -> list[FusionGroup]:
    """One fusion group per kernel, in an order in which they can run."""
    group_of = {s: singleton(s) for s in statements.values()}
    add_dependencies(statements, group_of)
    for rank, group in enumerate(order_all(dict.fromkeys(group_of.values()))):
        group.first = group.last = rank
    edges, min_numel = _edges_by_bytes(statements), _min_score_numel(statements)
    large = [edge for edge in edges if edge[0].numel >= min_numel]
    _fuse_neighbours(large, group_of, target)
    _fuse_neighbours(_only_consumers_of(large, edges, statements), group_of, target)
    # before these sums are fused with their other neighbours
    _fuse_backward(large, group_of, target)
    _fuse_neighbours(edges, group_of, target)
    _fuse_siblings(statements, group_of, target)
    groups = order_all(dict.fromkeys(group_of.values()))
    sort_statements(groups, statements)
    return groups


Edges = list[tuple[Statement, Statement]]  # producer, consumer
GroupOf = dict[Statement, FusionGroup]


def _edges_by_bytes(statements: dict[UOp, Statement]) -> Edges:
    edges = [
        (statements[value], statement)
        for statement in statements.values()
        for value in statement.reads
        if value in statements
    ]
    return sorted(edges, key=lambda e: (-e[0].numel * e[0].node.dtype.itemsize, e[1].order))


def _fuse_neighbours(edges: Edges, group_of: GroupOf, target: Target) -> None:
    """Fuse producers with their consumers."""
    for producer, consumer in edges:
        one, two = group_of[producer], group_of[consumer]
        if one is two:
            continue
        shared = _shared_loops(one, two)
        if may_fuse(one, two, shared, target) and not has_path_between(one, two):
            _fuse(one, two, shared, group_of)


def _min_score_numel(statements: dict[UOp, Statement]) -> float:
    """The size of the smallest wide product."""
    return min([s.numel for s in statements.values() if is_wide_product(s)], default=inf)


def _only_consumers_of(large: Edges, edges: Edges, statements: dict[UOp, Statement]) -> Edges:
    """The edges to statements that read nothing but a consumer of a large value, or a pointwise
    function of one: a result of attention, its cast, and what its gradient makes of that.
    """
    found = []
    followed = {consumer for _, consumer in large}
    for producer, consumer in sorted(edges, key=lambda edge: edge[1].order):
        if producer in followed and _is_only_input(producer, consumer, statements):
            found.append((producer, consumer))
            if not consumer.reduced:
                followed.add(consumer)
    return found


def _is_only_input(
    producer: Statement, consumer: Statement, statements: dict[UOp, Statement]
) -> bool:
    """True if the consumer reads no other materialized value."""
    return all(statements.get(value, producer) is producer for value in consumer.reads)


def _fuse_backward(edges: Edges, group_of: GroupOf, target: Target) -> None:
    """Fuse scores with the sums over their rows (fused attention backward)."""
    for producer, consumer in edges:
        one, two = group_of[producer], group_of[consumer]
        rows = None if one is two or producer.is_stored else summed_rows(one, two)
        if rows is not None:
            shared = [loop for loop in _shared_loops(one, two) if not _contains(rows, loop)]
            if may_fuse_backward(one, two, rows, shared, target) and not has_path_between(one, two):
                _fuse(one, two, shared, group_of)
                one.summed_rows = rows


def _contains(rows: Loop, loop: Loop) -> bool:
    return any(loop.get(statement) == axis for statement, axis in rows.items())


def _shared_loops(one: FusionGroup, two: FusionGroup) -> list[Loop]:
    """Pairs of outer loops with equal indices in every crossing read, merged."""
    reads = crossing_reads(one, two)
    if any(writer.node.op is Ops.ASSIGN and writer.node.arg for writer, _, _ in reads):
        return []  # its axes are not those of the buffer
    pairs: list[tuple[int, Loop]] = []
    for later in two.outer:
        for number, earlier in enumerate(one.outer):
            if loop_size(earlier) == loop_size(later) and all(
                indices[earlier[writer]] is reader.axes[later[reader]]
                for writer, reader, indices in reads
            ):
                pairs.append((number, {**earlier, **later}))
                break
    has_tiles = has_contraction(one), has_contraction(two)
    if has_tiles == (True, False) and len(pairs) < len(two.outer):
        pairs.sort(key=lambda pair: pair[0])  # so that its rows stay innermost
    merged = [loop for _, loop in pairs]
    if len(merged) == len(one.outer) == len(two.outer) and all(has_tiles):
        if _has_columns(merged[-1]):
            merged.pop()  # each needs a register tile: their rows may be blocked instead
    saves_store = any(not writer.is_stored for writer, _, _ in reads)
    return _outer_loops(merged) if saves_store else merged


def _has_columns(loop: Loop) -> bool:
    """True if the loop runs along the last axis of a matrix product."""
    tiles = [(statement, axis) for statement, axis in loop.items() if statement.is_contraction]
    return any(axis == len(statement.axes) - 1 for statement, axis in tiles)


def _outer_loops(shared: list[Loop]) -> list[Loop]:
    """The loops that can be outer loops: a value's last axis stays inside if any of its axes
    does.
    """
    for loop in shared:
        for statement, axis in loop.items():
            inner = [a for a, r in enumerate(statement.axes) if r is not ZERO]
            if inner[-1] == axis and len(shared) < len(inner):
                return _outer_loops([other for other in shared if other is not loop])
    return shared


def _fuse_siblings(statements: dict[UOp, Statement], group_of: GroupOf, target: Target) -> None:
    """Fuse groups that read the same large value with the same indices.

    Some may depend on others, as deviations from a mean on the mean, and still fuse with each
    other.
    """
    readers: dict[tuple[UOp, Indices, Indices, Indices], list[Statement]] = {}
    for statement in statements.values():
        for value, accesses in statement.reads.items():
            if prod(value.shape) * value.dtype.itemsize < SINGLE_CORE_BYTES:
                continue
            for indices in accesses:
                key = (value, indices, statement.axes, statement.reduced)
                others = readers.setdefault(key, [])
                if not any(
                    _fuse_if_profitable(other, statement, group_of, target) for other in others
                ):
                    others.append(statement)
                    del others[:-MAX_SIBLINGS]


def _fuse_if_profitable(
    first: Statement, second: Statement, group_of: GroupOf, target: Target
) -> bool:
    """True if two statements are in one group, after fusing their groups if that is profitable."""
    one, two = group_of[first], group_of[second]
    if one is not two:
        shared = _same_loops(one, two, first, second)
        if shared is None or not may_fuse_siblings(one, two, shared, target):
            return False
        _fuse(one, two, shared, group_of)
    return True


def _same_loops(
    one: FusionGroup, two: FusionGroup, first: Statement, second: Statement
) -> list[Loop] | None:
    """The outer loops of two groups, paired by the axes of these two statements; None if they
    differ.
    """
    pairs = {loop[first]: loop for loop in one.outer}
    others = {loop[second]: loop for loop in two.outer}
    if pairs.keys() != others.keys() or one.outer_size < MIN_OUTER_ITERATIONS:
        return None
    return [{**pairs[axis], **others[axis]} for axis in pairs]


def _fuse(one: FusionGroup, two: FusionGroup, shared: list[Loop], group_of: GroupOf) -> None:
    """Absorb the second group into the first."""
    for statement in two.statements:
        group_of[statement] = one
    one.outer = with_scans_last(shared)
    absorb(one, two)
