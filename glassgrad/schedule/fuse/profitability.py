"""Fusion profitability: memory traffic saved against loops, scratch and parallelism lost."""

from __future__ import annotations

from math import prod

from glassgrad.ir.linear import ZERO
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp
from glassgrad.schedule.fuse.groups import (
    FusionGroup,
    Loop,
    crossing_reads,
    is_scanned,
    loop_size,
    reaches,
)
from glassgrad.schedule.fuse.row_block_legality import (
    MIN_OUTER_ITERATIONS,
    SINGLE_CORE_BYTES,
    can_block_rows,
    has_contraction,
)
from glassgrad.schedule.graph.copies_before_writes import previous_versions
from glassgrad.schedule.materialize.statement import Statement
from glassgrad.schedule.movement import Indices, destination

MAX_STATEMENTS = 8  # more gain nothing and compile slowly
MAX_BLOCKED_STATEMENTS = 12  # with a matrix product among them: each statement has loops of its own
MAX_KERNEL_OPS = 1000  # instructions per element of all statements together; more compile slowly
# Instructions per element of a value that is stored anyway, as random weights are: longer code
# would be unrolled with the loops of its reader, and compiling it takes longer than it saves.
MAX_OPS_IN_OTHER_LOOPS = 64


def may_fuse(first: FusionGroup, second: FusionGroup, shared: list[Loop], target: Target) -> bool:
    """True if one kernel is better than two, given the loops they would share."""
    if _parameters(first, second) > target.max_params:
        return False
    if _is_too_large(first, second) or first.summed_rows or second.summed_rows:
        return False
    if any(s.node.op is Ops.COPY or s.is_scatter for s in first.statements + second.statements):
        return False
    if not _writes_allow(first, second, shared):
        return False
    if not _scans_allow(first, second, shared):
        return False
    if len(shared) == len(first.outer) == len(second.outer):
        return True
    if any(s.is_stored and s.ops > MAX_OPS_IN_OTHER_LOOPS for s in first.statements):
        return False
    if any(s.is_contraction for s in first.statements + second.statements):
        return can_block_rows(first, second, shared, target)
    size = prod(loop_size(loop) for loop in shared)
    largest = max(_bytes(s) for s in first.statements + second.statements)
    # one shared iteration saves nothing
    min_iterations = MIN_OUTER_ITERATIONS if target.cores > 1 else 2
    if size < min_iterations and largest > SINGLE_CORE_BYTES:
        return False
    if _inner_is_strided(first, shared) or _inner_is_strided(second, shared):
        return False
    row_bytes = sum(_bytes(s) for s in first.statements if not s.is_stored)
    return row_bytes / max(size, 1) <= target.l2_bytes / 2


def may_fuse_siblings(
    first: FusionGroup, second: FusionGroup, shared: list[Loop], target: Target
) -> bool:
    """True if independent groups with the same loops can be one kernel."""
    statements = first.statements + second.statements
    if (
        first.summed_rows
        or second.summed_rows
        or any(s.is_scatter or s.node.op is Ops.COPY for s in statements)
    ):
        return False
    products = [
        group for group in (first, second) if any(s.is_contraction for s in group.statements)
    ]
    if products and not (
        len(products) == 1 and _is_pointwise(first if products[0] is second else second)
    ):
        return False
    if _is_too_large(first, second) or _parameters(first, second) > target.max_params:
        return False
    if not _writes_allow(first, second, shared) or not _scans_allow(first, second, shared):
        return False
    return not reaches(first, second) and not reaches(second, first)


def _is_pointwise(group: FusionGroup) -> bool:
    """True if the group has no reductions or scans, and so can run where a tile is stored."""
    return not any(s.reduced or s.scanned is not None for s in group.statements)


def _is_too_large(first: FusionGroup, second: FusionGroup) -> bool:
    """True if the fused kernel would take too long to compile."""
    statements = first.statements + second.statements
    if len(statements) > MAX_STATEMENTS:
        if len(statements) > MAX_BLOCKED_STATEMENTS or not (
            has_contraction(first) or has_contraction(second)
        ):
            return True
    return sum(s.ops for s in statements) > MAX_KERNEL_OPS


def _bytes(statement: Statement) -> int:
    return statement.loops * statement.node.dtype.itemsize


def _parameters(first: FusionGroup, second: FusionGroup) -> int:
    values: set[UOp] = set()
    for statement in first.statements + second.statements:
        values.add(statement.node)
        values.update(statement.reads)
    return len(values)


def _writes_allow(first: FusionGroup, second: FusionGroup, shared: list[Loop]) -> bool:
    """True if overwritten buffers are read only by the iteration that overwrites them, and every
    element is written by the same iteration each time.
    """
    if any(s.node.op is Ops.ASSIGN and s.node.arg for s, _, _ in crossing_reads(first, second)):
        return False  # its axes are not those of the buffer
    statements = first.statements + second.statements
    for writer in statements:
        if writer.node.op is not Ops.ASSIGN:
            continue
        older = previous_versions(writer.node)
        for other in statements:
            if other.node in older and not _write_disjoint_or_same(writer, other, shared):
                return False
            for version in older:
                for indices in other.reads.get(version, ()):
                    if other is not writer and not _reads_what_it_writes(
                        writer, other, indices, shared
                    ):
                        return False
    return True


def _write_disjoint_or_same(first: Statement, second: Statement, shared: list[Loop]) -> bool:
    """True if two writes to a buffer are disjoint, or the same iteration of the shared loops writes
    an element both times.
    """
    pairs = zip(
        destination(first.node, first.axes), destination(second.node, second.axes), strict=True
    )
    if any(a.vmax < b.vmin or b.vmax < a.vmin for a, b in pairs):
        return True
    is_plain = not first.node.arg and not second.node.arg
    return is_plain and all(loop[first] == loop[second] for loop in shared)


def _scans_allow(first: FusionGroup, second: FusionGroup, shared: list[Loop]) -> bool:
    """True if at most one shared loop is scanned, with no other loops inside and no register tiles
    around.
    """
    statements = first.statements + second.statements
    scans = [s for s in statements if s.scanned is not None]
    if not scans:
        return True
    if any(s.is_stored and s.ops > MAX_OPS_IN_OTHER_LOOPS for s in first.statements):
        return False
    if any(s.is_contraction for s in statements):
        return False
    scanned = [loop for loop in shared if is_scanned(loop)]
    if not scanned:
        return True
    outer_size = prod(loop_size(loop) for loop in shared if loop is not scanned[0])
    if outer_size < MIN_OUTER_ITERATIONS and any(s.reduced for s in statements):
        return False  # its steps should be divided among cores
    inside = [s for s in scans if s.scanned == scanned[0][s]]
    return len(scanned) == 1 and all(
        len(shared) == sum(r is not ZERO for r in s.axes) for s in inside
    )


def _reads_what_it_writes(
    writer: Statement, reader: Statement, indices: Indices, shared: list[Loop]
) -> bool:
    pairs = {loop[writer]: reader.axes[loop[reader]] for loop in shared}
    return not writer.node.arg and all(
        index is pairs.get(axis, ZERO) for axis, index in enumerate(indices)
    )


def _inner_is_strided(group: FusionGroup, shared: list[Loop]) -> bool:
    """True if some value's last axis would be a shared loop while others are inner loops."""
    for statement in group.statements:
        axes = {loop[statement] for loop in shared}
        inner = [axis for axis, r in enumerate(statement.axes) if r is not ZERO]
        if inner and inner[-1] in axes and len(axes) < len(inner):
            return True
    return False
