"""A reduction over one-hot values along an axis of the result -> values combined at their places.

The gradient of a lookup is such a sum: every row of the table adds up what was looked up from it.
Walking over table and lookups would take their product; adding row by row takes their sum. Values
that are written to places, where the last one stays, are such a reduction by ASSIGN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from glassgrad.base.dtype import dtypes
from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.divmod import all_of, within
from glassgrad.ir.facts import identity, substitute
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Kernel, Target
from glassgrad.ir.uop import UOp, make_range
from glassgrad.schedule.kernels.reduction_elimination import at_place, selected, solve
from glassgrad.schedule.materialize.statement import Statement

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
    found = find_scatter(value, index.indices)
    if found is None:
        return None
    inner = () if target.has_threads else _run_inside(value, index, found.axis)
    outer = tuple([r for r in kernel.outer if r is not found.axis and r not in inner])
    start = UOp(Ops.STORE, dtypes.void, (index, _before(value), *outer, found.axis, *inner))
    places = tuple([found.at if i is found.axis else i for i in index.indices])
    gate = all_of(within(found.at, 0, found.axis.size))
    written = index.src[0].index(*places, gate=gate)
    own = dict(zip(inner, _other_ranges(kernel, inner), strict=True))  # moves may differ
    at, given = (substitute(node, own) for node in (written, found.value))
    loops = (*outer, *value.bound, *own.values())
    added = UOp(Ops.STORE, dtypes.void, (at, given, *loops), value.arg)
    return replace(
        kernel, body=UOp(Ops.SINK, dtypes.void, (start, added)), outer=outer, rewrites=True
    )


def _run_inside(value: UOp, index: UOp, axis: UOp) -> tuple[UOp, ...]:
    """Axes whose elements lie nearer than those of the axis: what is only written is written row by
    row. Sums stay under these axes, which cores share; so does all of it where there are threads.
    """
    if value.arg is not Ops.ASSIGN:
        return ()
    nearer = index.indices[index.indices.index(axis) + 1 :]
    return tuple([r for r in nearer if r.op is Ops.RANGE])


def _before(value: UOp) -> UOp:
    """What is there before anything is combined with it."""
    if value.arg is Ops.ASSIGN:
        return value.src[0].src[2]
    return value.const_like(identity(value.arg, value.dtype))


def without_assigning(kernel: Kernel) -> Kernel:
    """Reductions by ASSIGN that are no writing to places: found by the number of the last step."""
    nodes = kernel.body.toposort()
    found = [node for node in nodes if node.op is Ops.REDUCE and node.arg is Ops.ASSIGN]
    if not found:
        return kernel
    made: dict[UOp, UOp] = {}
    steps = _other_ranges(kernel, [node.bound[0] for node in found])
    for node, other in zip(found, steps, strict=True):
        made[node] = _last(substitute(node, made), other)
    return replace(kernel, body=substitute(kernel.body, made))


def _other_ranges(kernel: Kernel, ranges: Sequence[UOp]) -> list[UOp]:
    """As many more of these sizes."""
    number = max([node.axis for node in kernel.body.toposort() if node.op is Ops.RANGE]) + 1
    return [make_range(number + i, r.src[0], r.kind) for i, r in enumerate(ranges)]


def _last(value: UOp, other_step: UOp) -> UOp:
    """the last x[r] of where(c[r], x[r], y)  ->  where(n < 0, y, x[n]), where n is the last r"""
    (step,), (condition, chosen, other) = value.bound, value.src[0].src
    numbers = other_step.cast(dtypes.int32)
    holds = substitute(condition, {step: other_step})
    body = holds.where(numbers, numbers.const_like(-1))
    last = UOp(Ops.REDUCE, dtypes.int32, (body, other_step), Ops.MAX)
    return (last < 0).where(other, at_place(chosen, step, last.cast(dtypes.index)))
