"""Graph -> Schedule: each value is computed where it is used, staged inside a kernel, or stored."""

from __future__ import annotations

from collections.abc import Sequence

from glassgrad.ir.stages import Kernel, Schedule, Target
from glassgrad.ir.uop import UOp, toposort
from glassgrad.schedule.fuse.attention_backward import materializes_scores
from glassgrad.schedule.fuse.fusion import make_fusion_groups
from glassgrad.schedule.fuse.groups import (
    FusionGroup,
    clear_dependencies,
    deadlocked_versions,
    singleton,
)
from glassgrad.schedule.graph.attention_scores import rematerialize_scores
from glassgrad.schedule.graph.convolution_gradient import fuse_convolution_gradients
from glassgrad.schedule.graph.normalize import normalize
from glassgrad.schedule.graph.one_hot import find_one_hots
from glassgrad.schedule.graph.write_hazards import copy_versions, resolve_write_hazards
from glassgrad.schedule.kernels.build import base_buffer, build_kernel
from glassgrad.schedule.kernels.scatter import (
    lower_assign_reductions,
    might_scatter,
    scatter_kernel,
)
from glassgrad.schedule.kernels.zeroing import zero_uncovered
from glassgrad.schedule.materialize.policy import choose_materialization
from glassgrad.schedule.materialize.statement import Statement


def schedule(roots: Sequence[UOp], target: Target) -> Schedule:
    """The kernels that compute these values, in order."""
    roots = fuse_convolution_gradients(normalize(roots))
    values, has_fused_backward = rematerialize_scores(roots, target)
    values, statements, groups = _fusion_groups(values, target)
    if has_fused_backward and materializes_scores(groups):
        clear_dependencies(groups)
        values, statements, groups = _fusion_groups(
            rematerialize_scores(roots, target, fuses_backward=False)[0], target
        )
    stored = _stored(groups, statements)
    built = [_kernel(group, stored & set(group.statements), target) for group in groups]
    kernels = tuple([kernel for kernel, _ in built])
    left = [tuple([s.node for s in c.statements if s in stored]) for c in groups]
    clear_dependencies(groups)
    slots = tuple([slots for _, slots in built])
    return zero_uncovered(Schedule(kernels, slots, tuple(values), tuple(left)))


def _fusion_groups(
    values: list[UOp], target: Target
) -> tuple[list[UOp], dict[UOp, Statement], list[FusionGroup]]:
    """What is computed, every value that is kept, and which of them share a kernel."""
    values = resolve_write_hazards(values)
    statements = choose_materialization(values)
    while stuck := deadlocked_versions(statements):
        values = copy_versions(values, stuck)
        statements = choose_materialization(values)
    mark_scatters(statements, target)
    return values, statements, make_fusion_groups(statements, target)


def mark_scatters(statements: dict[UOp, Statement], target: Target) -> None:
    """Find the sums that are additions at places: each is written as a kernel and looked at."""
    one_hot_nodes = find_one_hots(toposort(statements))
    for statement in statements.values():
        if might_scatter(statement, one_hot_nodes):
            alone, _ = build_kernel(singleton(statement), {statement})
            statement.is_scatter = scatter_kernel(alone, target) is not None


def _kernel(
    group: FusionGroup, stored: set[Statement], target: Target
) -> tuple[Kernel, tuple[UOp, ...]]:
    kernel, slots = build_kernel(group, stored)
    if group.statements[0].is_scatter:
        kernel = scatter_kernel(kernel, target) or kernel
    return lower_assign_reductions(kernel), slots


def _stored(groups: list[FusionGroup], statements: dict[UOp, Statement]) -> set[Statement]:
    """Outputs, and whatever another kernel reads."""
    stored = {statement for statement in statements.values() if statement.is_stored}
    for group in groups:
        members = set(group.statements)
        for statement in group.statements:
            for value in statement.reads:
                if value in statements and statements[value] not in members:
                    stored.add(statements[value])
    return stored


__all__ = ["base_buffer", "schedule"]
