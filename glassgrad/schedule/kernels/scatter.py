"""Scatter: a reduction over one-hot values along an output axis combines values at their indices.

The gradient of a lookup is such a sum: each row of the table accumulates what was looked up from
it. Looping over table times lookups becomes a loop over lookups. Indexed writes, of which the last
one stays, are such a reduction by ASSIGN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from glassgrad.base.dtype import dtypes
from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.divmod import conjunction, within
from glassgrad.ir.facts import identity, substitute
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Kernel, Target
from glassgrad.ir.uop import UOp, make_range
from glassgrad.schedule.kernels.reduction_elimination import index_at, match_one_hot, solve_for
from glassgrad.schedule.materialize.statement import Statement

TRANSPARENT = frozenset((Ops.RESHAPE, Ops.PERMUTE, Ops.CAST))
MIN_TABLE_ROWS = 64  # table rows; for fewer, the plain sum is as fast


class Scatter(NamedTuple):
    """For all other axes, and in order over the reduced ranges: result[at] op= value."""

    axis: UOp
    at: UOp
    value: UOp


def might_scatter(statement: Statement, one_hots: set[UOp]) -> bool:
    """A cheap test on the graph: True if a one-hot value or a product with one is reduced."""
    node = statement.node
    if node.op is not Ops.REDUCE:
        return False
    body = node.src[0]
    while body.op in TRANSPARENT:
        body = body.src[0]
    return any(source in one_hots for source in (body, *body.src))


def find_scatter(value: UOp, axes: tuple[UOp, ...]) -> Scatter | None:
    """sum(where(v + c == e[n], x[v, n], 0) over n), for an output axis v"""
    selection = _match_selection(value) if value.op is Ops.REDUCE else None
    if selection is None:
        return None
    condition, chosen = selection
    for axis in axes:
        if axis.op is Ops.RANGE and axis.src[0].is_const and axis.size >= MIN_TABLE_ROWS:
            at = solve_for(condition, axis)
            if at is not None:
                return Scatter(axis, at, index_at(chosen, axis, at))
    return None


def _match_selection(value: UOp) -> tuple[UOp, UOp] | None:
    """(condition, x) of reduced values, all others of which are neutral."""
    op, body = value.arg, value.src[0]
    if op is Ops.ADD:
        return match_one_hot(body)
    if body.op is not Ops.WHERE or body.src[0].op is not Ops.CMPEQ:
        return None
    if op is Ops.ASSIGN:
        return body.src[0], body.src[1]
    if not body.src[2].is_const:
        return None
    changes = body.src[2].arg != identity(op, body.dtype)
    return None if changes else (body.src[0], body.src[1])


def scatter_kernel(kernel: Kernel, target: Target) -> Kernel | None:
    """store sum(where(v == e[n], x[v, n], 0) over n)
    ->  store 0; for n: result[e[n]] += x[e[n], n]
    """
    (store,) = kernel.body.src
    index, value = store.src[:2]
    if value.arg is not Ops.ASSIGN and value.dtype.kind == "float" and value.dtype.bits < 32:
        return None  # memory of this dtype would round, or need emulation, at every combination
    found = find_scatter(value, index.indices)
    if found is None:
        return None
    inner = () if target.has_threads else _inner_axes(value, index, found.axis)
    outer = tuple([r for r in kernel.outer if r is not found.axis and r not in inner])
    start = UOp(Ops.STORE, dtypes.void, (index, _initial_value(value), *outer, found.axis, *inner))
    indices = tuple([found.at if i is found.axis else i for i in index.indices])
    gate = conjunction(within(found.at, 0, found.axis.size))
    written = index.src[0].index(*indices, gate=gate)
    # loop moves may treat them differently
    renamed = dict(zip(inner, _fresh_ranges(kernel, inner), strict=True))
    at, given = (substitute(node, renamed) for node in (written, found.value))
    loops = (*outer, *value.bound, *renamed.values())
    added = UOp(Ops.STORE, dtypes.void, (at, given, *loops), value.arg)
    return replace(
        kernel, body=UOp(Ops.SINK, dtypes.void, (start, added)), outer=outer, may_alias=True
    )


def _inner_axes(value: UOp, index: UOp, axis: UOp) -> tuple[UOp, ...]:
    """Axes that are contiguous inside of the scattered axis: rows that are only written stay inner
    loops. Sums run under these axes, which cores share; on targets with threads, everything does.
    """
    if value.arg is not Ops.ASSIGN:
        return ()
    inner = index.indices[index.indices.index(axis) + 1 :]
    return tuple([r for r in inner if r.op is Ops.RANGE])


def _initial_value(value: UOp) -> UOp:
    """The value before anything is combined."""
    if value.arg is Ops.ASSIGN:
        return value.src[0].src[2]
    return value.const_like(identity(value.arg, value.dtype))


def lower_assign_reductions(kernel: Kernel) -> Kernel:
    """Lower reductions by ASSIGN that are no scatter: find the last selected step with MAX."""
    nodes = kernel.body.toposort()
    found = [node for node in nodes if node.op is Ops.REDUCE and node.arg is Ops.ASSIGN]
    if not found:
        return kernel
    replaced: dict[UOp, UOp] = {}
    steps = _fresh_ranges(kernel, [node.bound[0] for node in found])
    for node, other in zip(found, steps, strict=True):
        replaced[node] = _last_selected(substitute(node, replaced), other)
    return replace(kernel, body=substitute(kernel.body, replaced))


def _fresh_ranges(kernel: Kernel, ranges: Sequence[UOp]) -> list[UOp]:
    """Unused ranges of these sizes."""
    number = max([node.axis for node in kernel.body.toposort() if node.op is Ops.RANGE]) + 1
    return [make_range(number + i, r.src[0], r.kind) for i, r in enumerate(ranges)]


def _last_selected(value: UOp, other_step: UOp) -> UOp:
    """the last x[r] of where(c[r], x[r], y)  ->  where(n < 0, y, x[n]), where n is the last r"""
    (step,), (condition, chosen, other) = value.bound, value.src[0].src
    numbers = other_step.cast(dtypes.int32)
    holds = substitute(condition, {step: other_step})
    body = holds.where(numbers, numbers.const_like(-1))
    last = UOp(Ops.REDUCE, dtypes.int32, (body, other_step), Ops.MAX)
    return (last < 0).where(other, index_at(chosen, step, last.cast(dtypes.index)))
