"""Graph -> graph in which no buffer is overwritten while somebody still needs what it held."""

from __future__ import annotations

from collections.abc import Sequence

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, toposort
from glassgrad.schedule.kernels.movement import destination
from glassgrad.schedule.materialize.statement import ALWAYS_KEPT, make_axis, sources


def separate_effects(roots: Sequence[UOp]) -> list[UOp]:
    """A value that is computed from other places of the buffer it replaces is computed aside first.

    So is the copy of a buffer's old contents that is asked for together with the new ones.
    """
    nodes = toposort(roots)
    assigns = [node for node in nodes if node.op is Ops.ASSIGN]
    if not assigns:
        return list(roots)
    done: dict[UOp, UOp] = {}
    for node in nodes:
        src = tuple([done[source] for source in node.src])
        if node.op is Ops.ASSIGN and _reads_elsewhere(node):
            src = (src[0], _copy(src[1]))
        done[node] = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
    replaced = {version for assign in assigns for version in older_versions(assign)}
    return [_copy(done[root]) if root in replaced else done[root] for root in roots]


def older_versions(assign: UOp) -> list[UOp]:
    """What the buffer of an ASSIGN was before it, and before that."""
    found = []
    while assign.op is Ops.ASSIGN:
        assign = assign.src[0]
        found.append(assign)
    return found


def copy_first(roots: Sequence[UOp], versions: set[UOp]) -> list[UOp]:
    """Whoever reads one of these versions of a buffer reads a copy; only ASSIGN sees the buffer."""
    done: dict[UOp, UOp] = {}
    for node in toposort(roots):
        taken = [_copy(done[s]) if s in versions else done[s] for s in node.src]
        if node.op is Ops.ASSIGN or (node.op is Ops.CONTIGUOUS and node.src[0] in versions):
            taken[0] = done[node.src[0]]
        src = tuple(taken)
        done[node] = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
    return [done[root] for root in roots]


def _copy(node: UOp) -> UOp:
    return UOp(Ops.CONTIGUOUS, node.dtype, (node,))


def _reads_elsewhere(assign: UOp) -> bool:
    """Does computing the value read old contents at a place other than the one written?"""
    older, value = older_versions(assign), assign.src[1]
    axes = tuple([make_axis(number, n) for number, n in enumerate(value.shape)])
    written = destination(assign, axes)
    stack, seen = [(value, axes)], {(value, axes)}
    while stack:
        node, indices = stack.pop()
        if node in older and indices != written:
            return True
        if node.op not in ALWAYS_KEPT:
            for found in sources(node, indices):
                if found not in seen:
                    seen.add(found)
                    stack.append(found)
    return False
