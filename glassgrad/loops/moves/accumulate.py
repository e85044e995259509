"""ACCUMULATE: sums are accumulated in the output buffer, several rows of the input at a time."""

from __future__ import annotations

from typing import Any

from glassgrad.base.dtype import dtypes
from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.facts import identity
from glassgrad.ir.linear import add, scale
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.loops.nest import next_axis_number, substitute_axis
from glassgrad.loops.opts import IllegalMove


def accumulate(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """for n: y[n] = f(sum of x[k, n])
    ->  y = 0; for 8 rows k at a time: for n: y[n] += their sum; then for n: y[n] = f(y[n])
    """
    holder, reduce = _find_sum(nest, axis)
    if not nest.outer or nest.outer[-1].kind is not AxisKind.LOOP:
        raise IllegalMove("there is no shared loop to move inside of the reduction")
    if amount < 2 or axis.size % amount or axis.size == amount:
        raise IllegalMove(f"{amount} rows do not evenly divide {axis.size}")
    sum_index, outer, inner = holder.src[0], nest.outer[:-1], nest.outer[-1]
    start = const(identity(reduce.arg, reduce.dtype), reduce.dtype)
    number = next_axis_number(nest)
    first, last = make_range(number, inner.src[0]), make_range(number + 2, inner.src[0])
    coarse = make_range(axis.axis, axis.size // amount, AxisKind.REDUCE)
    fine = make_range(number + 1, amount, AxisKind.REDUCE)
    alone = Nest(UOp(Ops.SINK, dtypes.void, (reduce,)))
    (rows_sum,) = substitute_axis(alone, axis, (fine,), add(scale(coarse, amount), fine)).body.src
    clear_index = sum_index.substitute({inner: first})
    clear = UOp(Ops.STORE, dtypes.void, (clear_index, start, *outer, first))
    accumulation = UOp(
        Ops.STORE, dtypes.void, (sum_index, rows_sum, *outer, coarse, inner), reduce.arg
    )
    total = accumulation.index(*sum_index.substitute({inner: last}).indices).load()
    stores = [clear, accumulation]
    # The sums are overwritten last; if the plain sum is stored, `accumulation` has written it.
    for store in sorted(nest.body.src, key=lambda store: store is holder):
        if store is not holder or store.src[1] is not reduce:
            index, value = [n.substitute({reduce: total, inner: last}) for n in store.src[:2]]
            stores.append(UOp(Ops.STORE, dtypes.void, (index, value, *outer, last)))
    body = UOp(Ops.SINK, dtypes.void, tuple(stores))
    return replace(nest, body=body, outer=outer, may_alias=True)


def _find_sum(nest: Nest, axis: UOp) -> tuple[UOp, UOp]:
    """The store whose buffer can hold the sums, and the nest's one reduction, which is over this
    axis.
    """
    stores = nest.body.src
    if any(s.op is not Ops.STORE or s.arg is not None or s.bound != nest.outer for s in stores):
        raise IllegalMove("ACCUMULATE needs stores that share all of their loops")
    computed = [node for node in nest.body.toposort() if node.op in (Ops.REDUCE, Ops.STAGE)]
    if len(computed) != 1 or computed[0].bound != (axis,) or axis.kind is not AxisKind.REDUCE:
        raise IllegalMove("the stored values need more than one reduction over this axis")
    if nest.may_alias:
        raise IllegalMove("the nest reads a buffer that it writes")
    (reduce,) = computed
    fitting = [s for s in stores if s.src[0].dtype is reduce.dtype and s.src[0].gate is None]
    if not fitting:
        raise IllegalMove("no output buffer has the dtype of the sum")
    return next((s for s in fitting if s.src[1] is reduce), fitting[0]), reduce
