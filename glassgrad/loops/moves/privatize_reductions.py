"""Reductions that share a loop -> each over ranges of its own."""

from __future__ import annotations

from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.facts import rebuilt
from glassgrad.ir.ops import Ops
from glassgrad.ir.reindex import reindex
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp, make_range
from glassgrad.loops.nest import next_number


def with_own_sums(nest: Nest) -> Nest:
    """Each reduction over ranges of its own: their steps no longer have their loops in common."""
    number, limits = next_number(nest), list(nest.limits)
    done: dict[UOp, UOp] = {}
    seen: set[UOp] = set()
    for node in nest.body.toposort():
        same = rebuilt(node, done)
        if node.op is Ops.REDUCE:
            for r in seen.intersection(node.bound):
                own = make_range(number, r.src[0], r.kind)
                limits += [n._replace(axis=number) for n in nest.limits if n.axis == r.axis]
                same, number = reindex(same, {r: own}), number + 1
            seen.update(node.bound)
        done[node] = same
    return replace(nest, body=done[nest.body], limits=tuple(limits))
