"""Values that read other elements of the buffer that they are written to are copied first.

What else is read before it is overwritten is a matter of order: schedule/fuse/run_order.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from glassgrad.ir.ops import Ops
from glassgrad.ir.traverse import transform_all, transform_nodes
from glassgrad.ir.uop import UOp, toposort
from glassgrad.schedule.materialize.statement import ALWAYS_MATERIALIZED, make_axis, sources
from glassgrad.schedule.movement import destination


def resolve_write_hazards(roots: Sequence[UOp]) -> list[UOp]:
    """Copy a value first if it reads other elements of the buffer it is written to.

    Previous contents that are requested together with the new ones are copied as well.
    """
    nodes = toposort(roots)
    assigns = [node for node in nodes if node.op is Ops.ASSIGN]
    if not assigns:
        return list(roots)
    targets = {node.src[0] for node in assigns}
    assert len(targets) == len(assigns), "a version of a buffer is replaced by two writes"

    def copy_value(node: UOp, rebuilt: UOp) -> UOp:
        if node.op is not Ops.ASSIGN or not _reads_other_elements(node):
            return rebuilt
        return rebuilt.replace(src=(rebuilt.src[0], _copy(rebuilt.src[1])))

    done = transform_nodes(nodes, copy_value)
    replaced = {version for assign in assigns for version in previous_versions(assign)}
    return [_copy(done[root]) if root in replaced else done[root] for root in roots]


def previous_versions(assign: UOp) -> list[UOp]:
    """The versions of an ASSIGN's buffer before it, newest first."""
    found = []
    while assign.op is Ops.ASSIGN:
        assign = assign.src[0]
        found.append(assign)
    return found


def copy_versions(roots: Sequence[UOp], versions: set[UOp]) -> list[UOp]:
    """Replace reads of these buffer versions by reads of a copy; only ASSIGNs see the buffer."""

    def read_copies(node: UOp, rebuilt: UOp) -> UOp:
        pairs = zip(node.src, rebuilt.src, strict=True)
        src = [_copy(new) if old in versions else new for old, new in pairs]
        if node.op is Ops.ASSIGN or (node.op is Ops.CONTIGUOUS and node.src[0] in versions):
            src[0] = rebuilt.src[0]
        return rebuilt.replace(src=tuple(src))

    return transform_all(roots, read_copies)


def _copy(node: UOp) -> UOp:
    return UOp(Ops.CONTIGUOUS, node.dtype, (node,))


def _reads_other_elements(assign: UOp) -> bool:
    """True if computing the value reads previous contents at indices other than those written."""
    versions, value = previous_versions(assign), assign.src[1]
    axes = tuple([make_axis(number, n) for number, n in enumerate(value.shape)])
    written = destination(assign, axes)
    stack, seen = [(value, axes)], {(value, axes)}
    while stack:
        node, indices = stack.pop()
        if node in versions and indices != written:
            return True
        if node.op not in ALWAYS_MATERIALIZED:
            for found in sources(node, indices):
                if found not in seen:
                    seen.add(found)
                    stack.append(found)
    return False
