"""Would one kernel be better than two? Traffic saved against loops, scratch and cores lost."""

from __future__ import annotations

from math import prod

from glassgrad.ir.linear import ZERO
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp
from glassgrad.schedule.fuse.groups import Cluster, Loop, crossing, is_scanned, leads_to, loop_size
from glassgrad.schedule.fuse.row_blocks import FEW, SMALL_BYTES, contracts, go_in_blocks
from glassgrad.schedule.graph.write_hazards import older_versions
from glassgrad.schedule.kernels.movement import Indices, destination
from glassgrad.schedule.materialize.statement import Statement

MOST_STATEMENTS = 8  # more are no faster, and take the compiler longer than they save
MOST_BLOCKED = 12  # where a product is among them: each step has loops of its own
MOST_OPS = 1000
# Instructions for an element of a value that is stored in any case, as random weights are: longer
# code would be unrolled with the loops of its reader, and compiling it takes longer than it saves.
MAX_OPS_IN_OTHER_LOOPS = 64


def may_merge(one: Cluster, two: Cluster, shared: list[Loop], target: Target) -> bool:
    """Is one kernel better than two, given the loops that would be shared?"""
    if _parameters(one, two) > target.max_params:
        return False
    if _is_too_large(one, two) or one.rows or two.rows:
        return False
    if any(s.node.op is Ops.COPY or s.is_scatter for s in one.statements + two.statements):
        return False
    if not _effects_allow(one, two, shared):
        return False
    if not _scans_allow(one, two, shared):
        return False
    if len(shared) == len(one.outer) == len(two.outer):
        return True
    if any(s.is_stored and s.ops > MAX_OPS_IN_OTHER_LOOPS for s in one.statements):
        return False
    if any(s.is_contraction for s in one.statements + two.statements):
        return go_in_blocks(one, two, shared, target)
    size = prod(loop_size(loop) for loop in shared)
    largest = max(_bytes(s) for s in one.statements + two.statements)
    fewest = FEW if target.cores > 1 else 2  # rows that share a kernel; one alone saves nothing
    if size < fewest and largest > SMALL_BYTES:
        return False
    if _inner_is_strided(one, shared) or _inner_is_strided(two, shared):
        return False
    rows = sum(_bytes(s) for s in one.statements if not s.is_stored)
    return rows / max(size, 1) <= target.l2_bytes / 2


def may_join(one: Cluster, two: Cluster, shared: list[Loop], target: Target) -> bool:
    """Could clusters with the same loops, of which neither needs the other, be one kernel?"""
    statements = one.statements + two.statements
    if one.rows or two.rows or any(s.is_scatter or s.node.op is Ops.COPY for s in statements):
        return False
    products = [c for c in (one, two) if any(s.is_contraction for s in c.statements)]
    if products and not (len(products) == 1 and _is_pointwise(one if products[0] is two else two)):
        return False
    if _is_too_large(one, two) or _parameters(one, two) > target.max_params:
        return False
    if not _effects_allow(one, two, shared) or not _scans_allow(one, two, shared):
        return False
    return not leads_to(one, two) and not leads_to(two, one)


def _is_pointwise(cluster: Cluster) -> bool:
    """Is there nothing but elements by themselves, which could be done where a tile is stored?"""
    return not any(s.reduced or s.scanned is not None for s in cluster.statements)


def _is_too_large(one: Cluster, two: Cluster) -> bool:
    """Would the kernel take too long to compile?"""
    statements = one.statements + two.statements
    if len(statements) > MOST_STATEMENTS:
        if len(statements) > MOST_BLOCKED or not (contracts(one) or contracts(two)):
            return True
    return sum(s.ops for s in statements) > MOST_OPS


def _bytes(statement: Statement) -> int:
    return statement.loops * statement.node.dtype.itemsize


def _parameters(one: Cluster, two: Cluster) -> int:
    values: set[UOp] = set()
    for statement in one.statements + two.statements:
        values.add(statement.node)
        values.update(statement.reads)
    return len(values)


def _effects_allow(one: Cluster, two: Cluster, shared: list[Loop]) -> bool:
    """A buffer that is overwritten is read only by the iteration that overwrites it, and each
    element is written by the same iteration every time.
    """
    if any(s.node.op is Ops.ASSIGN and s.node.arg for s, _, _ in crossing(one, two)):
        return False  # the axes of such a statement are not those of the buffer
    statements = one.statements + two.statements
    for writer in statements:
        if writer.node.op is not Ops.ASSIGN:
            continue
        older = older_versions(writer.node)
        for other in statements:
            if other.node in older and not _written_together(writer, other, shared):
                return False
            for version in older:
                for indices in other.reads.get(version, ()):
                    if other is not writer and not _same_place(writer, other, indices, shared):
                        return False
    return True


def _written_together(one: Statement, two: Statement, shared: list[Loop]) -> bool:
    """Does the same iteration of the shared loops write an element both times, if two writes to a
    buffer have elements in common?
    """
    places = zip(destination(one.node, one.axes), destination(two.node, two.axes), strict=True)
    if any(a.vmax < b.vmin or b.vmax < a.vmin for a, b in places):
        return True
    is_plain = not one.node.arg and not two.node.arg
    return is_plain and all(loop[one] == loop[two] for loop in shared)


def _scans_allow(one: Cluster, two: Cluster, shared: list[Loop]) -> bool:
    """Scans along one loop at most, which has no others inside; no register tiles around them."""
    statements = one.statements + two.statements
    scans = [s for s in statements if s.scanned is not None]
    if not scans:
        return True
    if any(s.is_stored and s.ops > MAX_OPS_IN_OTHER_LOOPS for s in one.statements):
        return False
    if any(s.is_contraction for s in statements):
        return False
    ordered = [loop for loop in shared if is_scanned(loop)]
    if not ordered:
        return True
    around = prod(loop_size(loop) for loop in shared if loop is not ordered[0])
    if around < FEW and any(s.reduced for s in statements):
        return False  # its steps are worth a core each
    inside = [s for s in scans if s.scanned == ordered[0][s]]
    return len(ordered) == 1 and all(
        len(shared) == sum(r is not ZERO for r in s.axes) for s in inside
    )


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
