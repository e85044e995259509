"""GROUP and GROUPTOP: several threads share a reduction, through scratch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from glassgrad.base.dtype import dtypes
from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.linear import ZERO, add, scale
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp, make_range
from glassgrad.loops.nest import binders_over, is_reduced, next_axis_number, substitute_axis
from glassgrad.loops.opts import require


def group(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """sum over k  ->  thread t sums k = t, t+n, t+2n, …; then the partial sums are summed"""
    return _divide_reduction(
        nest, axis, amount, target, lambda thread, step: add(scale(step, amount), thread)
    )


def group_top(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """sum over k  ->  thread t sums the t-th contiguous part of k; then the partial sums are
    summed
    """
    steps = axis.size // max(amount, 1)
    return _divide_reduction(
        nest, axis, amount, target, lambda thread, step: add(scale(thread, steps), step)
    )


def _divide_reduction(
    nest: Nest, axis: UOp, amount: int, target: Target, index_of: Callable[[UOp, UOp], UOp]
) -> Nest:
    binders = binders_over(nest, axis)
    require(
        len(binders) == 1 and is_reduced(nest, axis), "GROUP needs an axis of exactly one reduction"
    )
    require(axis.kind is AxisKind.REDUCE, "this axis is unrolled")
    require(axis.src[0].is_const, "GROUP needs an axis of constant size")
    require(
        1 < amount <= axis.size and axis.size % amount == 0,
        f"{amount} does not evenly divide {axis.size}",
    )
    (reduce,) = binders
    require(not any(r.kind.is_unrolled for r in reduce.ranges), "GROUP must come before unrolling")
    kind = AxisKind.GROUP if target.has_threads else AxisKind.LOOP
    if target.has_threads:
        require(count_threads(nest) * amount <= target.group_size, "too many threads in a group")
        require(not _has_thread_reduction(nest), "one reduction is already divided among threads")
        require(
            not _reads_written_buffers(nest),
            "the nest reads a buffer that another thread may write",
        )
    number = next_axis_number(nest)
    thread, last = make_range(number, amount, kind), make_range(number + 1, amount, AxisKind.REDUCE)
    step = make_range(axis.axis, axis.size // amount, AxisKind.REDUCE)
    alone = Nest(UOp(Ops.SINK, dtypes.void, (reduce.src[0],)))
    body = substitute_axis(alone, axis, (step,), index_of(thread, step)).body.src[0]
    loops = tuple([step if r is axis else r for r in reduce.bound])
    if axis.size == amount:
        body, loops = body.substitute({step: ZERO}), tuple([r for r in loops if r is not step])
    partial = UOp(Ops.REDUCE, reduce.dtype, (body, *loops), reduce.arg) if loops else body
    stage = UOp(Ops.STAGE, reduce.dtype, (partial, thread, thread), (amount,))
    total = UOp(Ops.REDUCE, reduce.dtype, (stage.index(last).load(), last), reduce.arg)
    return replace(nest, body=nest.body.substitute({reduce: total}))


def _reads_written_buffers(nest: Nest) -> bool:
    """True if the nest reads anything that it also writes."""
    return nest.may_alias or reads_own_stores(nest)


def reads_own_stores(nest: Nest) -> bool:
    """True if an iteration reads back what it stored."""
    nodes = nest.body.toposort()
    return any(node.op is Ops.INDEX and node.src[0].op is Ops.STORE for node in nodes)


def _has_thread_reduction(nest: Nest) -> bool:
    return any(n.op is Ops.RANGE and n.kind is AxisKind.GROUP for n in nest.body.toposort())


def count_threads(nest: Nest) -> int:
    count = 1
    for node in nest.body.toposort():
        if node.op is Ops.RANGE and node.kind in (AxisKind.LOCAL, AxisKind.GROUP):
            count *= node.size
    return count
