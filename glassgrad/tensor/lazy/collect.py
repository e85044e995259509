"""Values -> all values to compute in one call, with everything that their writes concern.

An ASSIGN runs once only. Every live tensor that still reads the version which it overwrites is
computed in the same call, before the write.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from glassgrad.base.errors import CaptureError
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Sizes
from glassgrad.ir.size import bindings, sizes_in
from glassgrad.ir.uop import UOp
from glassgrad.tensor.core import live_holders
from glassgrad.tensor.lazy.buffer_versions import (
    OVERWRITTEN,
    PRESERVED_COPY,
    current_buffer,
    note_preserved_copy,
)
from glassgrad.tensor.lazy.deferred import expand_deferred
from glassgrad.tensor.lazy.unrealized import set_node
from glassgrad.tensor.record import bind_nodes

BUFFER, ASSIGN, DETACH, CONTIGUOUS = Ops.BUFFER, Ops.ASSIGN, Ops.DETACH, Ops.CONTIGUOUS
NUMBER = attrgetter("number")
GRADIENT_RULES = frozenset((DETACH, Ops.CUSTOM))
UNCHANGED = GRADIENT_RULES | {Ops.RESHAPE}


def uncomputed_nodes(roots: Iterable[UOp]) -> list[UOp]:
    """All nodes to compute under the roots, in topological order; nodes in memory end the walk."""
    seen: set[UOp] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            if node.realized is None or current_buffer(node) is None:
                stack.extend(node.src)
    return sorted(seen, key=NUMBER)


class Collected(NamedTuple):
    """What one call computes: its results, the writes among them, and all nodes under them.

    `expansions` maps deferred nodes to what they were expanded to.
    """

    roots: list[UOp]
    writes: list[UOp]
    nodes: list[UOp]
    expansions: dict[UOp, UOp]


def collect_values(values: Sequence[UOp]) -> Collected:
    """Everything to compute in one call for these values.

    Of several writes to one buffer only the last is a result; the others run on the way. Tensors
    that hold a version which is overwritten get a copy of it.
    """
    expansions = expand_deferred(values)
    roots = dict.fromkeys([expansions.get(value, value) for value in values])
    nodes = uncomputed_nodes(roots)
    refuse_overwritten(nodes)
    found = _pending_writes(nodes)
    if not found:  # without writes no other tensor is concerned
        return Collected(list(roots), [], nodes, expansions)
    held = live_holders()
    nodes = uncomputed_nodes([holder.uop for holder in held])
    while True:
        writes = dict.fromkeys(found)
        old = {write.src[0] for write in writes}
        old |= {now for target in old if (now := current_buffer(target)) is not None}
        reads = _readers(nodes, writes, old)
        for holder in [one for one in held if one.uop in reads]:
            if holder.uop in old:
                roots.pop(holder.uop, None)
                copy = UOp(CONTIGUOUS, holder.uop.dtype, (holder.uop,), PRESERVED_COPY)
                note_preserved_copy(copy, copy)
                set_node(holder, copy)
            roots[holder.uop] = None
        needed = uncomputed_nodes(roots)
        found = _pending_writes(needed)
        if len(found) == len(writes):
            break
    last = [write for write in writes if write not in old]
    results = list(dict.fromkeys([*roots, *last]))
    return Collected(results, list(writes), needed, expansions)


def _pending_writes(nodes: list[UOp]) -> list[UOp]:
    """The writes that have not run yet."""
    return [node for node in nodes if node.op is ASSIGN and current_buffer(node) is None]


def _readers(nodes: list[UOp], writes: dict[UOp, None], old: set[UOp]) -> set[UOp]:
    """The nodes that read a buffer version which one of these writes replaces."""
    reads: set[UOp] = set()
    for node in nodes:
        if node in old:
            reads.add(node)
        elif node.realized is not None:
            if node.realized in old:
                reads.add(node)
        elif node not in writes and not reads.isdisjoint(node.src):
            reads.add(node)
    return reads


# ---------------------------------------------------------------------- the graph to compute


def graph_to_compute(roots: Sequence[UOp], nodes: Sequence[UOp] | None = None) -> list[UOp]:
    """The roots as a graph over buffers: values in memory are replaced by their buffers, and the
    DETACH nodes that make constants unique are removed.

    `nodes` are all nodes under the roots in topological order, if the caller has them.

    Different roots get memory each: two parameters that start as equal zeros, or a value and the
    same value detached, through which no gradient flows.
    """
    done: dict[UOp, UOp] = {}  # only the nodes that change
    for node in uncomputed_nodes(roots) if nodes is None else nodes:
        if node.realized is not None:
            done[node] = _with_sizes(node, node.realized) if Sizes.exist else node.realized
        elif node.op is DETACH and node.arg is not None:
            done[node] = done.get(node.src[0], node.src[0])
        elif done and not done.keys().isdisjoint(node.src):
            src = tuple([done.get(source, source) for source in node.src])
            done[node] = UOp(node.op, node.dtype, src, node.arg)
            done[node].origin = done[node].origin or node.origin
    seen: dict[UOp, int] = {}
    values = []
    for root in roots:
        value = done.get(root, root)
        if value.op is not ASSIGN:  # a write stays in its buffer
            computed = _without_gradient_rules(value)
            times = seen[computed] = seen.get(computed, -1) + 1
            if times or _aliases_buffer(value):
                value = UOp(CONTIGUOUS, value.dtype, (value,), times)
        values.append(value)
    return values


def _without_gradient_rules(value: UOp) -> UOp:
    """The value itself, under nodes that only say what its gradient is."""
    while value.op in GRADIENT_RULES:
        value = value.src[0]
    return value


def _with_sizes(node: UOp, held: UOp) -> UOp:
    """A value of symbolic shape, read from memory of a concrete shape: padded to the largest sizes
    and cut to the symbolic ones.
    """
    if not sizes_in(node.shape):
        return held
    around = tuple([(0, int(size) - n) for size, n in zip(node.shape, held.shape, strict=True)])
    wide = UOp(Ops.PAD, node.dtype, (held,), around)
    pairs = tuple([(0, size) for size in node.shape])
    return UOp(Ops.SHRINK, node.dtype, (wide, *bind_nodes(bindings(pairs))), pairs)


def _aliases_buffer(value: UOp) -> bool:
    """True if a value is just the contents of a buffer, now or after a write. As a result it needs
    memory of its own, since nothing orders later writes to the buffer after reads of the result.
    """
    while value.op in UNCHANGED:
        value = value.src[0]
    return value.op is BUFFER or value.op is ASSIGN


# ---------------------------------------------------------------------- overwritten contents


def overwritten_buffer(nodes: Iterable[UOp]) -> UOp | None:
    """A buffer among these nodes whose contents were overwritten, if there is one."""
    if not OVERWRITTEN:
        return None
    return next((n for n in nodes if n.op is BUFFER and n.arg in OVERWRITTEN), None)


def refuse_overwritten(nodes: Iterable[UOp]) -> None:
    """Raise an error for values that a replay overwrote: replays, unlike recorded writes, do not
    wait for readers.
    """
    lost = overwritten_buffer(nodes)
    if lost is not None:
        raise CaptureError(
            f"a value of shape {lost.shape} that this is made of has been overwritten by a replay "
            "of a captured function",
            hint="realize() before the replay what is made of the old value, or return it from "
            "the function",
        )
