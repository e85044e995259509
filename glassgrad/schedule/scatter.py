"""A reduction over one-hot values along an axis of the result -> values combined at their places.

The gradient of a lookup is such a sum: every row of the table adds up what was looked up from it.
Walking over table and lookups would take their product; adding row by row takes their sum.
"""

from __future__ import annotations

from typing import NamedTuple

from glassgrad.base.dtype import dtypes
from glassgrad.base.records import replace
from glassgrad.ir.divmod import all_of, within
from glassgrad.ir.facts import identity
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Kernel
from glassgrad.ir.uop import UOp
from glassgrad.schedule.collapse import at_place, selected, solve
from glassgrad.schedule.statement import Statement

WORTH_IT = 64  # rows of the table; for fewer, a plain sum is as good


class Scatter(NamedTuple):
    """For all other axes, and in order of the reduced ranges: result[at] op= value."""

    axis: UOp
    at: UOp
    value: UOp


def may_scatter(statement: Statement, lookups: set[UOp]) -> bool:
    """A quick look at the graph: is one-hot times something reduced?"""
    node = statement.node
    if node.op is not Ops.REDUCE:
        return False
    body = node.src[0]
    while body.op is Ops.RESHAPE or body.op is Ops.PERMUTE:
        body = body.src[0]
    return any(source in lookups for source in (body, *body.src))


def find_scatter(value: UOp, axes: tuple[UOp, ...]) -> Scatter | None:
    """sum(where(v + c == e[n], x[v, n], 0) over n), for an axis v of the result"""
    found = _chosen(value) if value.op is Ops.REDUCE else None
    if found is None:
        return None
    condition, chosen = found
    for axis in axes:
        if axis.op is Ops.RANGE and axis.src[0].is_const and axis.size >= WORTH_IT:
            at = solve(condition, axis)
            if at is not None:
                return Scatter(axis, at, at_place(chosen, axis, at))
    return None


def _chosen(value: UOp) -> tuple[UOp, UOp] | None:
    """(condition, x) of values that are reduced, where all others change nothing."""
    op, body = value.arg, value.src[0]
    if op is Ops.ADD:
        return selected(body)
    if body.op is not Ops.WHERE or body.src[0].op is not Ops.CMPEQ or not body.src[2].is_const:
        return None
    changes = body.src[2].arg != identity(op, body.dtype)
    return None if changes else (body.src[0], body.src[1])


def scatter_kernel(kernel: Kernel) -> Kernel | None:
    """store sum(where(v == e[n], x[v, n], 0) over n)
    ->  store 0; for n: result[e[n]] += x[e[n], n]
    """
    (store,) = kernel.body.src
    index, value = store.src[:2]
    found = find_scatter(value, index.indices)
    if found is None:
        return None
    outer = tuple([r for r in kernel.outer if r is not found.axis])
    nothing = value.const_like(identity(value.arg, value.dtype))
    start = UOp(Ops.STORE, dtypes.void, (index, nothing, *outer, found.axis))
    places = tuple([found.at if i is found.axis else i for i in index.indices])
    gate = all_of(within(found.at, 0, found.axis.size))
    target = index.src[0].index(*places, gate=gate)
    added = UOp(Ops.STORE, dtypes.void, (target, found.value, *outer, *value.bound), value.arg)
    return replace(
        kernel, body=UOp(Ops.SINK, dtypes.void, (start, added)), outer=outer, rewrites=True
    )
