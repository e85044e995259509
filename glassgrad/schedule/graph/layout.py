"""Values that are stored the way they are read: heads side by side, not one after the other.

What is read through a reshape of a permutation has indices with divisions, and rows in pieces. If
all readers do, and the last axis stays the last, storing it as they see it costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.size import Size
from glassgrad.ir.uop import UOp

MADE = OpGroup.POINTWISE | {Ops.REDUCE}
FEW = 1 << 12  # elements whose order nobody minds


def arranged(nodes: Sequence[UOp], roots: Sequence[UOp]) -> set[UOp]:
    """The PERMUTEs that would be kept instead of what they permute."""
    found = {node for node in nodes if node.op is Ops.PERMUTE and _may_be_stored(node)}
    if not found:
        return found
    readers: dict[UOp, list[UOp]] = {n: [] for node in found for n in (node, node.src[0])}
    for node in nodes:
        for source in node.src:
            if source in readers:
                readers[source].append(node)
    for root in roots:
        found.difference_update((root, *[n for n in found if n.src[0] is root]))
    return {
        node
        for node in found
        if len(readers[node.src[0]]) == 1 and all(_joins(reader) for reader in readers[node])
    }


def _may_be_stored(node: UOp) -> bool:
    """Is it a value with its axes in another order, but the last one?"""
    order, shape = node.arg, node.shape
    if node.src[0].op not in MADE or any(isinstance(n, Size) for n in shape):
        return False
    is_moved = [axis for axis in order if shape[order.index(axis)] > 1]
    return bool(order[-1] == len(order) - 1) and is_moved != sorted(is_moved) and prod(shape) >= FEW


def _joins(node: UOp) -> bool:
    """Does a reshape make longer rows of what it reads?"""
    if node.op is not Ops.RESHAPE:
        return False
    wide = [n for n in node.shape if n != 1]
    return bool(wide) and wide[-1] > node.src[0].shape[-1]
