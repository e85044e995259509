"""Values to compute -> intermediate values to store, since live tensors would recompute them.

A program may realize one part of a graph first (a cache that each layer writes to, say) and the
rest later. Two kinds of intermediate values are then stored instead of computed twice: those that
`contiguous()` asked memory for, and those that are small compared to what is read to compute them,
such as a matrix times a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod

from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.uop import UOp
from glassgrad.tensor.core import TensorCore

CONTIGUOUS, REDUCE, ADD, MUL = Ops.CONTIGUOUS, Ops.REDUCE, Ops.ADD, Ops.MUL
SAME_ELEMENTS = frozenset((Ops.RESHAPE, Ops.DETACH))
MOVED = (OpGroup.MOVEMENT | {Ops.CAST}) - {Ops.GATHER}
TRAVERSED = (
    OpGroup.MOVEMENT
    | OpGroup.ELEMENTWISE
    | {
        Ops.CAST,
        Ops.BITCAST,
        Ops.DETACH,
        CONTIGUOUS,
    }
)
KEPT_OPS = frozenset((CONTIGUOUS, REDUCE))
MIN_REDUCTION_RATIO = 64  # elements read per element of the result


def nodes_worth_keeping(nodes: Iterable[UOp], roots: set[UOp]) -> set[UOp]:
    """The nodes under the roots that should not be computed twice."""
    kinds = [node for node in nodes if node.op in KEPT_OPS and node.realized is None]
    copied = {_unmoved(root.src[0]) for root in roots if root.op is CONTIGUOUS}  # stored already
    return {n for n in kinds if n not in roots and n not in copied and _is_worth_memory(n)}


def values_to_materialize(
    wanted: set[UOp], live_tensors: Callable[[], Iterable[TensorCore]]
) -> list[UOp]:
    """The wanted nodes that live tensors are made of, too.

    If a tensor holds one in another shape, as gradients often are, it is stored in that shape: the
    next step of a loop recognises nodes that tensors hold, not those under them.
    """
    oldest = min(node.number for node in wanted)
    found: dict[UOp, None] = {}
    seen: set[UOp] = set()
    stack = [tensor.uop for tensor in live_tensors() if tensor.uop.number >= oldest]
    for held in [node for node in stack if node.op in SAME_ELEMENTS and node.realized is None]:
        if (node := _unshaped(held)) in wanted and node not in seen:
            found[held] = None
            seen |= {held, node}
    while stack:
        node = stack.pop()
        if node.number < oldest or node in seen or node.realized is not None:
            continue
        seen.add(node)
        if node in wanted:
            found[node] = None
        elif node.op in TRAVERSED:
            stack.extend(node.src)
    return sorted(found, key=lambda node: node.number)


def _is_worth_memory(node: UOp) -> bool:
    if node.op is CONTIGUOUS:
        return True
    if node.op is not REDUCE or node.arg[0] is not ADD or node.src[0].op is not MUL:
        return False
    read = sum(prod(_unmoved(operand).shape) for operand in node.src[0].src)
    return read >= MIN_REDUCTION_RATIO * prod(node.shape)


def _unshaped(uop: UOp) -> UOp:
    while uop.op in SAME_ELEMENTS and uop.realized is None:
        uop = uop.src[0]
    return uop


def _unmoved(uop: UOp) -> UOp:
    while uop.op in MOVED:
        uop = uop.src[0]
    return uop
