"""ACCUMULATE: sums that are kept in memory while rows of what is summed go by."""

from __future__ import annotations

from typing import Any

from glassgrad.base.dtype import dtypes
from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.facts import identity
from glassgrad.ir.linear import add, scale
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.loops.nest import exchange, next_number
from glassgrad.loops.opts import IllegalMove


def accumulate(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """for n: y[n] = f(sum of x[k, n])
    ->  y = 0; for 8 rows k at a time: for n: y[n] += their sum; then for n: y[n] = f(y[n])
    """
    home, reduce = _only_sum(nest, axis)
    if not nest.outer or nest.outer[-1].kind is not AxisKind.LOOP:
        raise IllegalMove("there is no loop that could run inside of this one")
    if amount < 2 or axis.size % amount or axis.size == amount:
        raise IllegalMove(f"{amount} rows at a time do not divide {axis.size}")
    index, outer, inner = home.src[0], nest.outer[:-1], nest.outer[-1]
    start = const(identity(reduce.arg, reduce.dtype), reduce.dtype)
    number = next_number(nest)
    first, last = make_range(number, inner.src[0]), make_range(number + 2, inner.src[0])
    coarse = make_range(axis.axis, axis.size // amount, AxisKind.REDUCE)
    fine = make_range(number + 1, amount, AxisKind.REDUCE)
    lone = Nest(UOp(Ops.SINK, dtypes.void, (reduce,)))
    (rows,) = exchange(lone, axis, (fine,), add(scale(coarse, amount), fine)).body.src
    cleared = index.substitute({inner: first})
    zero = UOp(Ops.STORE, dtypes.void, (cleared, start, *outer, first))
    more = UOp(Ops.STORE, dtypes.void, (index, rows, *outer, coarse, inner), reduce.arg)
    found = more.index(*index.substitute({inner: last}).indices).load()
    stores = [zero, more]
    for store in sorted(nest.body.src, key=lambda store: store is home):  # what it holds goes last
        if store is not home or store.src[1] is not reduce:  # else `more` has written it
            place, value = [n.substitute({reduce: found, inner: last}) for n in store.src[:2]]
            stores.append(UOp(Ops.STORE, dtypes.void, (place, value, *outer, last)))
    body = UOp(Ops.SINK, dtypes.void, tuple(stores))
    return replace(nest, body=body, outer=outer, rewrites=True)


def _only_sum(nest: Nest, axis: UOp) -> tuple[UOp, UOp]:
    """The store whose memory can hold the sums, and the nest's one reduction: over this axis."""
    stores = nest.body.src
    if any(s.op is not Ops.STORE or s.arg is not None or s.bound != nest.outer for s in stores):
        raise IllegalMove("only a nest whose stores share all of their loops collects in memory")
    steps = [node for node in nest.body.toposort() if node.op in (Ops.REDUCE, Ops.STAGE)]
    if len(steps) != 1 or steps[0].bound != (axis,) or axis.kind is not AxisKind.REDUCE:
        raise IllegalMove("what is stored needs more than a sum over this axis")
    if nest.rewrites:
        raise IllegalMove("something reads what is written")
    (reduce,) = steps
    fitting = [s for s in stores if s.src[0].dtype is reduce.dtype and s.src[0].gate is None]
    if not fitting:
        raise IllegalMove("the memory of the result has no room for the sum")
    return next((s for s in fitting if s.src[1] is reduce), fitting[0]), reduce
