"""Reductions that share a range -> each over a range of its own."""

from __future__ import annotations

from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.ops import Ops
from glassgrad.ir.reindex import reindex
from glassgrad.ir.stages import Nest
from glassgrad.ir.traverse import transform
from glassgrad.ir.uop import UOp, make_range
from glassgrad.loops.nest import next_axis_number


def privatize_reductions(nest: Nest) -> Nest:
    """Give each reduction ranges of its own, so that reductions need not run in one loop."""
    number, mask_bounds = next_axis_number(nest), list(nest.mask_bounds)
    used: set[UOp] = set()

    def privatize(node: UOp, rebuilt: UOp) -> UOp:
        nonlocal number
        if node.op is not Ops.REDUCE:
            return rebuilt
        for r in used.intersection(node.bound):
            own = make_range(number, r.src[0], r.kind)
            mask_bounds.extend(
                [n._replace(axis=number) for n in nest.mask_bounds if n.axis == r.axis]
            )
            rebuilt, number = reindex(rebuilt, {r: own}), number + 1
        used.update(node.bound)
        return rebuilt

    body = transform(nest.body, privatize)
    return replace(nest, body=body, mask_bounds=tuple(mask_bounds))
