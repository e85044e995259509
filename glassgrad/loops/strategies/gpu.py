"""Strategy for machines with threads: vectors per thread, and threads per group."""

from __future__ import annotations

from math import prod

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.strides import stride
from glassgrad.loops.nest import axes
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.shared.recipe_builder import RecipeBuilder, write_axis

MAX_GROUP_THREADS = 256  # threads of a group
MIN_GROUPS = 256  # with fewer groups, several threads share a reduction
REDUCTION_THREADS = 16  # threads that share a reduction
MIN_SHARED_STEPS = 256  # reduction steps for which sharing pays
ELEMENTS_PER_THREAD = 4  # one vector load of a GPU


def gpu_strategy(builder: RecipeBuilder) -> bool:
    """Shape any nest for a machine with threads; False on other machines."""
    if not builder.target.has_threads:
        return False
    _share_reductions(builder)
    _vectorize_stores(builder)
    _divide_among_threads(builder)
    return True


def _share_reductions(builder: RecipeBuilder) -> None:
    """Several threads share a long reduction where there are few groups."""
    for binder in builder.binders(Ops.REDUCE):
        outer = prod(r.size for r in axes(builder.nest) if r.kind is AxisKind.GLOBAL)
        inside = binder.bound[-1]
        is_long = inside.size % REDUCTION_THREADS == 0 and inside.size >= MIN_SHARED_STEPS
        if outer < MIN_GROUPS and is_long:
            builder.try_move(Opt(OptOps.GROUPTOP, inside.axis, REDUCTION_THREADS))


def _vectorize_stores(builder: RecipeBuilder) -> None:
    """Each thread computes a vector of contiguous elements."""
    for binder in builder.binders(Ops.STORE):
        axis = write_axis(binder)
        if axis is None or axis.kind is not AxisKind.GLOBAL:
            continue
        if axis.size % ELEMENTS_PER_THREAD == 0:
            if all(stride(index, axis) in (0, 1) for index in builder.loads(binder)):
                builder.try_move(Opt(OptOps.UPCAST, axis.axis, ELEMENTS_PER_THREAD))


def _divide_among_threads(builder: RecipeBuilder) -> None:
    """As many threads per group as divide the innermost grid axis that allows several."""
    found = [r for r in axes(builder.nest) if r.kind is AxisKind.GLOBAL]
    for axis in reversed(found):
        amount = MAX_GROUP_THREADS
        while amount > 1 and axis.size % amount:
            amount //= 2
        if amount > 1:
            builder.try_move(Opt(OptOps.LOCAL, axis.axis, min(amount, builder.target.group_size)))
            return
