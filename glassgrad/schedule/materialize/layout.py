"""Store values in the axis order in which they are read: attention heads side by side.

A reshape of a permutation is read with divisions and short rows. If all readers do so, and the last
axis stays last, storing the permuted value costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.size import Size
from glassgrad.ir.uop import UOp

COMPUTED_OPS = OpGroup.POINTWISE | {Ops.REDUCE}
MIN_ELEMENTS = 1 << 12  # smaller values are not worth it


def find_layout_permutes(nodes: Sequence[UOp], roots: Sequence[UOp]) -> set[UOp]:
    """The PERMUTEs to materialize instead of their sources."""
    candidates = {node for node in nodes if node.op is Ops.PERMUTE and _can_be_stored(node)}
    if not candidates:
        return candidates
    readers: dict[UOp, list[UOp]] = {n: [] for node in candidates for n in (node, node.src[0])}
    for node in nodes:
        for source in node.src:
            if source in readers:
                readers[source].append(node)
    for root in roots:
        candidates.difference_update((root, *[n for n in candidates if n.src[0] is root]))
    return {
        node
        for node in candidates
        if len(readers[node.src[0]]) == 1
        and all(_lengthens_rows(reader) for reader in readers[node])
    }


def _can_be_stored(node: UOp) -> bool:
    """True if a computed value has its axes permuted, except for the last one."""
    order, shape = node.arg, node.shape
    if node.src[0].op not in COMPUTED_OPS or any(isinstance(n, Size) for n in shape):
        return False
    moved = [axis for axis in order if shape[order.index(axis)] > 1]
    return (
        bool(order[-1] == len(order) - 1) and moved != sorted(moved) and prod(shape) >= MIN_ELEMENTS
    )


def _lengthens_rows(node: UOp) -> bool:
    """True if a RESHAPE makes the rows of its source longer."""
    if node.op is not Ops.RESHAPE:
        return False
    wide = [n for n in node.shape if n != 1]
    return bool(wide) and wide[-1] > node.src[0].shape[-1]
