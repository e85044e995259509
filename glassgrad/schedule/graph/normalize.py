"""Graph -> graph without what the scheduler need not know: computed values, DETACH, CUSTOM, …"""

from __future__ import annotations

from collections.abc import Sequence

from glassgrad.ir.facts import identity, rebuilt
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, const, toposort
from glassgrad.schedule.graph.split_reduction import split_long, split_scan

RESHAPE, REDUCE, SCAN = Ops.RESHAPE, Ops.REDUCE, Ops.SCAN
TRANSPARENT = frozenset((Ops.DETACH, Ops.CUSTOM))


def normalize(roots: Sequence[UOp]) -> list[UOp]:
    """The same values, read from buffers where they have been computed before."""
    done: dict[UOp, UOp] = {}
    for node in toposort(roots, stop=lambda found: found.realized is not None):
        if node.realized is not None:
            done[node] = node.realized
            continue
        same = rebuilt(node, done)
        if same is not node and same.origin is None:
            same.origin = node.origin
        done[node] = _plain(same)
    return [done[root] for root in roots]


def _plain(node: UOp) -> UOp:
    op = node.op
    if op in TRANSPARENT:
        return node.src[0]
    if op is Ops.ASSIGN and 0 in node.src[1].shape:
        return node.src[0]  # nothing would write this version: its readers wait for the one before
    if op is RESHAPE and node.src[0].op is RESHAPE:
        node = UOp(RESHAPE, node.dtype, (node.src[0].src[0],), node.arg)
    if op is RESHAPE and node.src[0].shape == node.shape:
        return node.src[0]
    if op is REDUCE and 0 in node.src[0].shape and 0 not in node.shape:
        nothing = const(identity(node.arg[0], node.dtype), node.dtype)
        ones = UOp(RESHAPE, node.dtype, (nothing,), (1,) * len(node.shape))
        return UOp(Ops.EXPAND, node.dtype, (ones,), node.shape) if node.shape else nothing
    if op is SCAN:
        return split_scan(node)
    return split_long(node) if op is REDUCE else node
