"""Graph -> Schedule: every value is computed where it is used, kept inside a kernel, or stored."""

from __future__ import annotations

from collections.abc import Sequence

from glassgrad.ir.stages import Kernel, Schedule, Target
from glassgrad.ir.uop import UOp, toposort
from glassgrad.schedule.fuse.attention_backward import leaves_planes
from glassgrad.schedule.fuse.fusion import make_clusters
from glassgrad.schedule.fuse.groups import Cluster, single, stuck_versions, unlink
from glassgrad.schedule.graph.attention_scores import compute_again
from glassgrad.schedule.graph.convolution_gradient import join_sheared
from glassgrad.schedule.graph.normalize import normalize
from glassgrad.schedule.graph.one_hot import one_hots
from glassgrad.schedule.graph.write_hazards import copy_first, separate_effects
from glassgrad.schedule.kernels.build import make_kernel, place
from glassgrad.schedule.kernels.scatter import may_scatter, scatter_kernel, without_assigning
from glassgrad.schedule.kernels.zeroing import zero_uncovered
from glassgrad.schedule.materialize.policy import choose_fates
from glassgrad.schedule.materialize.statement import Statement


def schedule(roots: Sequence[UOp], target: Target) -> Schedule:
    """The kernels that compute these values, in order."""
    roots = join_sheared(normalize(roots))
    values, has_swept = compute_again(roots, target)
    values, kept, clusters = _clusters(values, target)
    if has_swept and leaves_planes(clusters):
        unlink(clusters)
        values, kept, clusters = _clusters(compute_again(roots, target, sweeps=False)[0], target)
    stored = _stored(clusters, kept)
    made = [_kernel(cluster, stored & set(cluster.statements), target) for cluster in clusters]
    kernels = tuple([kernel for kernel, _ in made])
    left = [tuple([s.node for s in c.statements if s in stored]) for c in clusters]
    unlink(clusters)
    slots = tuple([slots for _, slots in made])
    return zero_uncovered(Schedule(kernels, slots, tuple(values), tuple(left)))


def _clusters(
    values: list[UOp], target: Target
) -> tuple[list[UOp], dict[UOp, Statement], list[Cluster]]:
    """What is computed, every value that is kept, and which of them share a kernel."""
    values = separate_effects(values)
    kept = choose_fates(values)
    while stuck := stuck_versions(kept):
        values = copy_first(values, stuck)
        kept = choose_fates(values)
    mark_scatters(kept, target)
    return values, kept, make_clusters(kept, target)


def mark_scatters(kept: dict[UOp, Statement], target: Target) -> None:
    """Find the sums that are additions at places: each is written as a kernel and looked at."""
    lookups = one_hots(toposort(kept))
    for statement in kept.values():
        if may_scatter(statement, lookups):
            alone, _ = make_kernel(single(statement), {statement})
            statement.is_scatter = scatter_kernel(alone, target) is not None


def _kernel(
    cluster: Cluster, stored: set[Statement], target: Target
) -> tuple[Kernel, tuple[UOp, ...]]:
    kernel, slots = make_kernel(cluster, stored)
    if cluster.statements[0].is_scatter:
        kernel = scatter_kernel(kernel, target) or kernel
    return without_assigning(kernel), slots


def _stored(clusters: list[Cluster], kept: dict[UOp, Statement]) -> set[Statement]:
    """Outputs, and whatever another kernel reads."""
    stored = {statement for statement in kept.values() if statement.is_stored}
    for cluster in clusters:
        mates = set(cluster.statements)
        for statement in cluster.statements:
            for value in statement.reads:
                if value in kept and kept[value] not in mates:
                    stored.add(kept[value])
    return stored


__all__ = ["place", "schedule"]
