"""ACCUMULATE: sums that are kept in memory while rows of what is summed go by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from glassgrad.base.dtype import dtypes
from glassgrad.ir.facts import identity
from glassgrad.ir.linear import add, scale
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.loops.nest import blocks, exchange, next_number
from glassgrad.loops.opts import IllegalMove


def accumulate(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """for n: y[n] = sum of x[k, n]  ->  y = 0; for 8 rows k at a time: for n: y[n] += their sum"""
    store, reduce = _only_sum(nest, axis)
    if not nest.outer or nest.outer[-1].kind is not AxisKind.LOOP:
        raise IllegalMove("there is no loop that could run inside of this one")
    if amount < 2 or axis.size % amount or axis.size == amount:
        raise IllegalMove(f"{amount} rows at a time do not divide {axis.size}")
    index, outer, inner = store.src[0], nest.outer[:-1], nest.outer[-1]
    start = const(identity(reduce.arg, reduce.dtype), reduce.dtype)
    number = next_number(nest)
    first = make_range(number, inner.src[0])
    coarse = make_range(axis.axis, axis.size // amount, AxisKind.REDUCE)
    fine = make_range(number + 1, amount, AxisKind.REDUCE)
    lone = Nest(UOp(Ops.SINK, dtypes.void, (reduce,)))
    (rows,) = exchange(lone, axis, (fine,), add(scale(coarse, amount), fine)).body.src
    cleared = index.substitute({inner: first})
    zero = UOp(Ops.STORE, dtypes.void, (cleared, start, *outer, first))
    more = UOp(Ops.STORE, dtypes.void, (index, rows, *outer, coarse, inner), reduce.arg)
    body = UOp(Ops.SINK, dtypes.void, (zero, more))
    return replace(nest, body=body, outer=outer, rewrites=True)


def _only_sum(nest: Nest, axis: UOp) -> tuple[UOp, UOp]:
    """The nest's one store, and the reduction over the axis that is all it stores."""
    stores = nest.body.src
    if len(stores) != 1 or stores[0].op is not Ops.STORE or stores[0].arg is not None:
        raise IllegalMove("only a nest with one store collects sums in memory")
    (store,) = stores
    reduce = store.src[1]
    if reduce.op is not Ops.REDUCE or reduce.bound != (axis,) or axis.kind is not AxisKind.REDUCE:
        raise IllegalMove("what is stored is not just a sum over this axis")
    if len(blocks(nest, axis)) != 1 or nest.rewrites or store.bound != nest.outer:
        raise IllegalMove("something else runs over this axis, or reads what is written")
    return store, reduce
