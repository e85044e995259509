"""Reductions that share a range -> each over a range of its own."""

from __future__ import annotations

from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.facts import rebuilt
from glassgrad.ir.ops import Ops
from glassgrad.ir.reindex import reindex
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp, make_range
from glassgrad.loops.nest import next_axis_number


def privatize_reductions(nest: Nest) -> Nest:
    """Give each reduction ranges of its own, so that reductions need not run in one loop."""
    number, mask_bounds = next_axis_number(nest), list(nest.mask_bounds)
    done: dict[UOp, UOp] = {}
    used: set[UOp] = set()
    for node in nest.body.toposort():
        same = rebuilt(node, done)
        if node.op is Ops.REDUCE:
            for r in used.intersection(node.bound):
                own = make_range(number, r.src[0], r.kind)
                mask_bounds += [
                    n._replace(axis=number) for n in nest.mask_bounds if n.axis == r.axis
                ]
                same, number = reindex(same, {r: own}), number + 1
            used.update(node.bound)
        done[node] = same
    return replace(nest, body=done[nest.body], mask_bounds=tuple(mask_bounds))
