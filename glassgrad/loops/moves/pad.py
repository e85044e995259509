"""PADTO: pad an axis to a multiple, and mask the new elements."""

from __future__ import annotations

from typing import Any

from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.divmod import less
from glassgrad.ir.facts import identity
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.traverse import transform
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.loops.moves.skip_zeros import FACTOR_OPS
from glassgrad.loops.nest import binders_over
from glassgrad.loops.opts import require


def pad_to(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """for i in 5: y[i] = x[i]  ->  for i in 8: if i < 5: y[i] = x[i]"""
    require(axis.src[0].is_const, "PADTO needs an axis of constant size")
    require(amount > 1 and axis.size % amount != 0, "this axis needs no padding")
    require(
        axis.kind in (AxisKind.LOOP, AxisKind.REDUCE, AxisKind.GLOBAL),
        "PADTO must come before other splits",
    )
    binders = binders_over(nest, axis)
    require(
        all(b.op is not Ops.STAGE for b in binders), "a loop that fills scratch cannot be padded"
    )
    scans = [binder for binder in binders if binder.op is Ops.SCAN]
    require(
        all(s.bound[0] is axis for s in scans), "only the outermost axis of a scan can be padded"
    )
    wide = make_range(axis.axis, -(-axis.size // amount) * amount, axis.kind)
    valid = less(wide, axis.size)

    def mask(node: UOp, rebuilt: UOp) -> UOp:
        return wide if node is axis else _masked(node, rebuilt, axis, valid)

    outer = tuple([wide if r is axis else r for r in nest.outer])
    return replace(nest, body=transform(nest.body, mask), outer=outer)


def _masked(before: UOp, node: UOp, axis: UOp, valid: UOp) -> UOp:
    """Gate memory accesses by `valid`; where it is false, a reduction combines its identity."""
    if node.op is Ops.INDEX and axis in before.ranges:
        gate = valid if node.gate is None else node.gate & valid
        return node.src[0].index(*node.indices, gate=gate)
    if node.op is Ops.REDUCE and axis in before.bound and not _adds_only_zeros(before, axis):
        neutral = const(identity(node.arg, node.dtype), node.dtype)
        return UOp(node.op, node.dtype, (valid.where(node.src[0], neutral), *node.bound), node.arg)
    return node


def _adds_only_zeros(reduce: UOp, axis: UOp) -> bool:
    """True if the sum adds products whose loads are all 0 outside of the axis."""
    nodes = reduce.value.toposort(stop=lambda node: node.op is Ops.LOAD)
    return reduce.arg is Ops.ADD and all(n.op in FACTOR_OPS and axis in n.ranges for n in nodes)
