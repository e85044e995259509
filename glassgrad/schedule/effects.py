"""Graph -> graph in which no buffer is overwritten while somebody still needs what it held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, toposort
from glassgrad.schedule.fates import ALWAYS_KEPT, make_axis, sources
from glassgrad.schedule.movement import Indices, destination

Edge = tuple[UOp, UOp]  # (reader, source)


def separate_effects(roots: Sequence[UOp]) -> list[UOp]:
    """Old contents that are needed at another place, or next to the new ones, are copied first."""
    nodes = toposort(roots)
    assigns = [node for node in nodes if node.op is Ops.ASSIGN]
    if not assigns:
        return list(roots)
    copied = {edge for assign in assigns for edge in _hazards(assign, nodes)}
    done: dict[UOp, UOp] = {}
    for node in nodes:
        src = tuple([done[source] for source in node.src])
        if any((node, source) in copied for source in node.src):
            src = tuple([_taken(node, i, source, copied, done) for i, source in enumerate(node.src)])
        done[node] = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
    replaced = {version for assign in assigns for version in older_versions(assign)}
    return [_copy(done[root]) if root in replaced else done[root] for root in roots]


def _copy(node: UOp) -> UOp:
    return UOp(Ops.CONTIGUOUS, node.dtype, (node,))


def _taken(
    node: UOp, position: int, source: UOp, copied: set[Edge], done: dict[UOp, UOp]
) -> UOp:
    """A source, or a copy of it; what an ASSIGN writes to is never a copy."""
    is_target = node.op is Ops.ASSIGN and position == 0
    if is_target or (node, source) not in copied:
        return done[source]
    return _copy(done[source])


def older_versions(assign: UOp) -> list[UOp]:
    """What the buffer of an ASSIGN was before it, and before that."""
    found = []
    while assign.op is Ops.ASSIGN:
        assign = assign.src[0]
        found.append(assign)
    return found


def _hazards(assign: UOp, nodes: list[UOp]) -> Iterator[Edge]:
    older = older_versions(assign)
    if any(place != destination(assign, axes) for place, axes in _reads(assign, older)):
        yield assign, assign.src[1]
    later = _dependents(assign, nodes)
    if len(later) == 1:
        return
    touching = _inline_readers(older, nodes)
    for node in later:
        if node is assign:
            continue
        for position, source in enumerate(node.src):
            is_target = node.op is Ops.ASSIGN and position == 0
            if source in touching and source not in later and not is_target:
                yield node, source


def _reads(assign: UOp, older: list[UOp]) -> Iterator[tuple[Indices, Indices]]:
    """(where the target's old contents are read, the axes) while the value is computed in line."""
    value = assign.src[1]
    axes = tuple([make_axis(number, n) for number, n in enumerate(value.shape)])
    stack, seen = [(value, axes)], {(value, axes)}
    while stack:
        node, indices = stack.pop()
        if node in older:
            yield indices, axes
        elif node.op not in ALWAYS_KEPT:
            for found in sources(node, indices):
                if found not in seen:
                    seen.add(found)
                    stack.append(found)


def _dependents(root: UOp, nodes: list[UOp]) -> set[UOp]:
    """The node and all nodes that depend on it."""
    found = {root}
    for node in nodes:
        if node.number > root.number and any(source in found for source in node.src):
            found.add(node)
    return found


def _inline_readers(older: list[UOp], nodes: list[UOp]) -> set[UOp]:
    """Old contents, and the values that may be computed from them wherever they are used."""
    found = set(older)
    for node in nodes:
        if node.op not in ALWAYS_KEPT and any(source in found for source in node.src):
            found.add(node)
    return found
