"""The state of scheduling, and the passes as functions of it; `__init__.py` lists them in order."""

from __future__ import annotations

from typing import NamedTuple

from glassgrad.ir.show import listing
from glassgrad.ir.stages import Kernel, Schedule, Target
from glassgrad.ir.uop import UOp, toposort
from glassgrad.schedule.fuse.fusion import make_fusion_groups
from glassgrad.schedule.fuse.groups import FusionGroup, singleton
from glassgrad.schedule.fuse.run_order import clear_dependencies, deadlocked_versions
from glassgrad.schedule.graph.attention_scores import rematerialize_scores
from glassgrad.schedule.graph.convolution_gradient import fuse_convolution_gradients
from glassgrad.schedule.graph.copies_before_writes import copy_versions, resolve_write_hazards
from glassgrad.schedule.graph.normalize import normalize
from glassgrad.schedule.kernels.build import build_kernel
from glassgrad.schedule.kernels.scatter import (
    lower_assign_reductions,
    might_scatter,
    scatter_kernel,
)
from glassgrad.schedule.kernels.zeroing import zero_uncovered
from glassgrad.schedule.materialize.one_hot import find_one_hots
from glassgrad.schedule.materialize.policy import choose_materialization
from glassgrad.schedule.materialize.statement import Statement


class Scheduling(NamedTuple):
    """The state between two passes: each pass fills in what it decides."""

    values: list[UOp]
    statements: dict[UOp, Statement] | None = None
    groups: list[FusionGroup] | None = None
    schedule: Schedule | None = None

    @property
    def materialized(self) -> dict[UOp, Statement]:
        assert self.statements is not None, "materialization is not chosen yet"
        return self.statements

    @property
    def fused(self) -> list[FusionGroup]:
        assert self.groups is not None, "no fusion groups are made yet"
        return self.groups

    @property
    def result(self) -> Schedule:
        assert self.schedule is not None, "no kernels are built yet"
        return self.schedule


class Shown(NamedTuple):
    """A state for listeners: it prints what was decided last, and is only written when printed."""

    values: tuple[UOp, ...]
    statements: tuple[UOp, ...]
    groups: tuple[tuple[UOp, ...], ...]
    kernels: tuple[UOp, ...]

    def __str__(self) -> str:
        if self.kernels:
            return "\n".join(map(str, self.kernels))
        if self.groups:
            return "\n".join([f"group: {', '.join(map(_name, group))}" for group in self.groups])
        if self.statements:
            return "\n".join([f"statement: {_name(node)}" for node in self.statements])
        return listing(toposort(self.values))


def shown(state: Scheduling) -> Shown:
    groups = [tuple([s.node for s in group.statements]) for group in state.groups or ()]
    kernels = () if state.schedule is None else state.schedule.kernels
    return Shown(
        tuple(state.values),
        tuple(state.statements or ()),
        tuple(groups),
        tuple([kernel.body for kernel in kernels]),
    )


def _name(node: UOp) -> str:
    return f"{node.op.name} {node.dtype.name} {node.shape}"


def normalize_graph(state: Scheduling, _: Target) -> Scheduling:
    return state._replace(values=normalize(state.values))


def fuse_gradients(state: Scheduling, _: Target) -> Scheduling:
    return state._replace(values=fuse_convolution_gradients(state.values))


def rematerialize(state: Scheduling, target: Target) -> Scheduling:
    return state._replace(values=rematerialize_scores(state.values, target))


def resolve_hazards(state: Scheduling, _: Target) -> Scheduling:
    return state._replace(values=resolve_write_hazards(state.values))


def materialize(state: Scheduling, _: Target) -> Scheduling:
    """Choose statements; readers that would have to wait for an overwrite read a copy."""
    values = state.values
    statements = choose_materialization(values)
    while versions := deadlocked_versions(statements):
        values = copy_versions(values, versions)
        statements = choose_materialization(values)
    return state._replace(values=values, statements=statements)


def mark_scatters(state: Scheduling, target: Target) -> Scheduling:
    """Mark the statements that become scatters: each candidate is built as a kernel to find out."""
    one_hots = find_one_hots(toposort(state.materialized))
    for statement in state.materialized.values():
        if might_scatter(statement, one_hots):
            alone, _ = build_kernel(singleton(statement), {statement})
            statement.is_scatter = scatter_kernel(alone, target) is not None
    return state


def fuse(state: Scheduling, target: Target) -> Scheduling:
    return state._replace(groups=make_fusion_groups(state.materialized, target))


def build_kernels(state: Scheduling, target: Target) -> Scheduling:
    groups, stored = state.fused, _stored(state)
    built = [_kernel(group, stored & set(group.statements), target) for group in groups]
    outputs = [tuple([s.node for s in group.statements if s in stored]) for group in groups]
    clear_dependencies(groups)
    made = Schedule(
        tuple([kernel for kernel, _ in built]),
        tuple([slots for _, slots in built]),
        tuple(state.values),
        tuple(outputs),
    )
    return state._replace(schedule=made)


def zero(state: Scheduling, _: Target) -> Scheduling:
    return state._replace(schedule=zero_uncovered(state.result))


def _kernel(
    group: FusionGroup, stored: set[Statement], target: Target
) -> tuple[Kernel, tuple[UOp, ...]]:
    kernel, slots = build_kernel(group, stored)
    if group.statements[0].is_scatter:
        kernel = scatter_kernel(kernel, target) or kernel
    return lower_assign_reductions(kernel), slots


def _stored(state: Scheduling) -> set[Statement]:
    """Outputs, and whatever another kernel reads."""
    statements = state.materialized
    stored = {statement for statement in statements.values() if statement.is_stored}
    for group in state.fused:
        members = set(group.statements)
        for statement in group.statements:
            for value in statement.reads:
                if value in statements and statements[value] not in members:
                    stored.add(statements[value])
    return stored
