"""Sums over all rows of a plane: carried along while blocks of its rows go by, in one kernel.

Gradients of attention use a plane of weights along its rows, for queries, and across, for keys and
values. Where there are heads for all cores, one kernel does both (the move
ATTENTION_BACKWARD of loops/).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Target
from glassgrad.schedule.fuse.groups import Cluster, Loop, crossing, loop_size
from glassgrad.schedule.fuse.row_blocks import has_plane
from glassgrad.schedule.materialize.statement import Statement

ROWS = 32  # a number of rows that blocks of 32 divide has blocks of a good size
MOST_STATEMENTS = 16
APART = frozenset((Ops.ASSIGN, Ops.COPY))


def is_swept(planes: int, rows: int, target: Target) -> bool:
    """Are there blocks of rows, and planes for all cores? Each is swept by one of them."""
    is_even = planes % target.cores == 0 or planes >= 4 * target.cores
    return is_even and rows % ROWS == 0 and rows > ROWS


def rows_summed(one: Cluster, two: Cluster) -> Loop | None:
    """The rows of one cluster's planes, if the other one sums over them all that it reads."""
    rows = _rows(one)
    reads = crossing(one, two) if _sums_planes(one, two) else []
    is_summed = all(
        w in rows and indices[rows[w]] in reader.reduced for w, reader, indices in reads
    )
    return rows if reads and is_summed else None


def _sums_planes(one: Cluster, two: Cluster) -> bool:
    """Does cluster two sum over the rows of a plane of cluster one, and over nothing else?"""
    rows, sizes = _rows(one), {s.numel for s in one.statements if has_plane(s)}
    return any(
        w in rows and w.numel in sizes and list(reader.reduced) == [indices[rows[w]]]
        for w, reader, indices in (crossing(one, two) if sizes else ())
    )


def _rows(cluster: Cluster) -> Loop:
    return cluster.rows or (cluster.outer[-1] if cluster.outer else {})


def may_sweep(one: Cluster, two: Cluster, rows: Loop, shared: list[Loop], target: Target) -> bool:
    """Would one kernel be small enough, with loops around the rows?"""
    statements = one.statements + two.statements
    planes = prod(loop_size(loop) for loop in shared)
    if not is_swept(planes, loop_size(rows), target) or len(statements) > MOST_STATEMENTS:
        return False
    if any(s.node.op in APART or s.is_scatter or s.scanned is not None for s in statements):
        return False
    values = {s.node for s in statements}.union(*[s.reads for s in statements])
    sums = [s for s in two.statements if s.reduced]
    return len(values) <= target.max_params and all(_is_one_sum(s) for s in sums)


def _is_one_sum(statement: Statement) -> bool:
    return statement.is_contraction and len(statement.reduced) == 1


def leaves_planes(clusters: Iterable[Cluster]) -> bool:
    """Does a plane have to be in memory, as another kernel sums over its rows?"""
    return any(_sums_planes(one, two) for one in clusters for two in one.after)
