"""Statements -> Clusters: those that share outer loops become one kernel, to save traffic."""

from __future__ import annotations

from math import inf, prod

from glassgrad.ir.linear import ZERO
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp
from glassgrad.schedule.fuse.attention_backward import may_sweep, rows_summed
from glassgrad.schedule.fuse.groups import (
    Cluster,
    Loop,
    crossing,
    in_order,
    link,
    loop_size,
    order_statements,
    scanned_last,
    single,
    something_between,
    take_in,
)
from glassgrad.schedule.fuse.profitability import may_join, may_merge
from glassgrad.schedule.fuse.row_blocks import FEW, SMALL_BYTES, contracts, has_plane
from glassgrad.schedule.kernels.movement import Indices
from glassgrad.schedule.materialize.statement import Statement

MOST_SIBLINGS = 4  # clusters with the same reads that a later one is compared with


def make_clusters(kept: dict[UOp, Statement], target: Target) -> list[Cluster]:
    """One cluster per kernel, in an order in which they can run."""
    home = {s: single(s) for s in kept.values()}
    link(kept, home)
    for rank, cluster in enumerate(in_order(dict.fromkeys(home.values()))):
        cluster.first = cluster.last = rank
    edges, least = _edges_by_bytes(kept), _least_plane(kept)
    large = [edge for edge in edges if edge[0].numel >= least]
    _merge_neighbours(large, home, target)
    sums = {consumer for _, consumer in large}
    _merge_neighbours([e for e in edges if e[0] in sums and _is_all_of(*e, kept)], home, target)
    _merge_swept(large, home, target)  # before sums are merged with whoever else reads them
    _merge_neighbours(edges, home, target)
    _merge_siblings(kept, home, target)
    clusters = in_order(dict.fromkeys(home.values()))
    order_statements(clusters, kept)
    return clusters


Edges = list[tuple[Statement, Statement]]  # producer, consumer
Home = dict[Statement, Cluster]


def _edges_by_bytes(kept: dict[UOp, Statement]) -> Edges:
    edges = [
        (kept[value], statement)
        for statement in kept.values()
        for value in statement.reads
        if value in kept
    ]
    return sorted(edges, key=lambda e: (-e[0].numel * e[0].node.dtype.itemsize, e[1].order))


def _merge_neighbours(edges: Edges, home: Home, target: Target) -> None:
    """Who reads a value is computed together with it."""
    for producer, consumer in edges:
        one, two = home[producer], home[consumer]
        if one is two:
            continue
        shared = _shared_loops(one, two)
        if may_merge(one, two, shared, target) and not something_between(one, two):
            _merge(one, two, shared, home)


def _least_plane(kept: dict[UOp, Statement]) -> float:
    """How many elements the smallest plane has."""
    return min([s.numel for s in kept.values() if has_plane(s)], default=inf)


def _is_all_of(producer: Statement, consumer: Statement, kept: dict[UOp, Statement]) -> bool:
    """Is something made of one value alone?"""
    return all(kept.get(value, producer) is producer for value in consumer.reads)


def _merge_swept(edges: Edges, home: Home, target: Target) -> None:
    """Sums over all rows of a plane, of which a block of rows at a time goes by."""
    for producer, consumer in edges:
        one, two = home[producer], home[consumer]
        rows = None if one is two or producer.is_stored else rows_summed(one, two)
        if rows is not None:
            shared = [loop for loop in _shared_loops(one, two) if not _is_part(rows, loop)]
            if may_sweep(one, two, rows, shared, target) and not something_between(one, two):
                _merge(one, two, shared, home)
                one.rows = rows


def _is_part(rows: Loop, loop: Loop) -> bool:
    return any(loop.get(statement) == axis for statement, axis in rows.items())


def _shared_loops(one: Cluster, two: Cluster) -> list[Loop]:
    """The pairs of outer loops that are the same in every crossing read, joined."""
    reads = crossing(one, two)
    if any(writer.node.op is Ops.ASSIGN and writer.node.arg for writer, _, _ in reads):
        return []  # the axes of such a statement are not those of the buffer
    pairs: list[tuple[int, Loop]] = []
    for later in two.outer:
        for number, earlier in enumerate(one.outer):
            if loop_size(earlier) == loop_size(later) and all(
                indices[earlier[writer]] is reader.axes[later[reader]]
                for writer, reader, indices in reads
            ):
                pairs.append((number, {**earlier, **later}))
                break
    has_tiles = contracts(one), contracts(two)
    if has_tiles == (True, False) and len(pairs) < len(two.outer):
        pairs.sort(key=lambda pair: pair[0])  # so that its rows still are the innermost
    joined = [loop for _, loop in pairs]
    if len(joined) == len(one.outer) == len(two.outer) and all(has_tiles):
        if _has_columns(joined[-1]):
            joined.pop()  # a tile each: their rows could go in blocks
    is_saved = any(not writer.is_stored for writer, _, _ in reads)
    return _outside(joined) if is_saved else joined


def _has_columns(loop: Loop) -> bool:
    """Does a loop run along the last axis of a product?"""
    tiles = [(statement, axis) for statement, axis in loop.items() if statement.is_contraction]
    return any(axis == len(statement.axes) - 1 for statement, axis in tiles)


def _outside(shared: list[Loop]) -> list[Loop]:
    """Those that can be around: a value's last axis stays inside if another one does."""
    for loop in shared:
        for statement, axis in loop.items():
            inner = [a for a, r in enumerate(statement.axes) if r is not ZERO]
            if inner[-1] == axis and len(shared) < len(inner):
                return _outside([other for other in shared if other is not loop])
    return shared


def _merge_siblings(kept: dict[UOp, Statement], home: Home, target: Target) -> None:
    """Clusters that walk through the same large value in the same way become one. Some of them may
    wait for others, as distances from a mean wait for the mean, and still join each other.
    """
    seen: dict[tuple[UOp, Indices, Indices, Indices], list[Statement]] = {}
    for statement in kept.values():
        for value, places in statement.reads.items():
            if prod(value.shape) * value.dtype.itemsize < SMALL_BYTES:
                continue
            for indices in places:
                key = (value, indices, statement.axes, statement.reduced)
                others = seen.setdefault(key, [])
                if not any(_joins(other, statement, home, target) for other in others):
                    others.append(statement)
                    del others[:-MOST_SIBLINGS]


def _joins(first: Statement, second: Statement, home: Home, target: Target) -> bool:
    """Are two statements in one cluster, or can theirs be merged now?"""
    one, two = home[first], home[second]
    if one is not two:
        shared = _same_loops(one, two, first, second)
        if shared is None or not may_join(one, two, shared, target):
            return False
        _merge(one, two, shared, home)
    return True


def _same_loops(
    one: Cluster, two: Cluster, first: Statement, second: Statement
) -> list[Loop] | None:
    """The outer loops of two clusters, paired by the axes of these two statements."""
    pairs = {loop[first]: loop for loop in one.outer}
    others = {loop[second]: loop for loop in two.outer}
    if pairs.keys() != others.keys() or one.outer_size < FEW:
        return None
    return [{**pairs[axis], **others[axis]} for axis in pairs]


def _merge(one: Cluster, two: Cluster, shared: list[Loop], home: Home) -> None:
    """`one` takes in `two`."""
    for statement in two.statements:
        home[statement] = one
    one.outer = scanned_last(shared)
    take_in(one, two)
