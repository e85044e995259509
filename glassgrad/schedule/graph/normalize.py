"""Graph -> graph with computed values as buffers, without DETACH and CUSTOM, with reductions of
narrow floats in float32, and long reductions split.
"""

from __future__ import annotations

from collections.abc import Sequence

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.facts import identity, rebuilt
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, const, toposort
from glassgrad.schedule.graph.split_reduction import split_reduction, split_scan

CAST, RESHAPE, REDUCE, SCAN = Ops.CAST, Ops.RESHAPE, Ops.REDUCE, Ops.SCAN
COMBINING_OPS = frozenset((Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN))
TRANSPARENT = frozenset((Ops.DETACH, Ops.CUSTOM))


def normalize(roots: Sequence[UOp]) -> list[UOp]:
    """The same values, read from buffers where they have been computed."""
    done: dict[UOp, UOp] = {}
    for node in toposort(roots, stop=lambda found: found.realized is not None):
        if node.realized is not None:
            done[node] = node.realized
            continue
        rebuilt_node = rebuilt(node, done)
        if rebuilt_node is not node and rebuilt_node.origin is None:
            rebuilt_node.origin = node.origin
        done[node] = _simplify(rebuilt_node)
    return [done[root] for root in roots]


def _simplify(node: UOp) -> UOp:
    op = node.op
    if op in TRANSPARENT:
        return node.src[0]
    if op is Ops.ASSIGN and 0 in node.src[1].shape:
        return node.src[0]  # an empty write: readers use the previous version
    if op is RESHAPE and node.src[0].op is RESHAPE:
        node = UOp(RESHAPE, node.dtype, (node.src[0].src[0],), node.arg)
    if op is RESHAPE and node.src[0].shape == node.shape:
        return node.src[0]
    if op is REDUCE and 0 in node.src[0].shape and 0 not in node.shape:
        neutral = const(identity(node.arg[0], node.dtype), node.dtype)
        ones = UOp(RESHAPE, node.dtype, (neutral,), (1,) * len(node.shape))
        return UOp(Ops.EXPAND, node.dtype, (ones,), node.shape) if node.shape else neutral
    if op is SCAN:
        return split_scan(node)
    if op is not REDUCE:
        return node
    if node.arg[0] in COMBINING_OPS and _is_narrow_float(node.dtype):
        (x,) = node.src
        wide = UOp(REDUCE, dtypes.float32, (UOp(CAST, dtypes.float32, (x,)),), node.arg)
        return UOp(CAST, node.dtype, (split_reduction(wide),))
    return split_reduction(node)


def _is_narrow_float(dtype: DType) -> bool:
    return dtype.kind == "float" and dtype.bits < 32
