"""The traversal of hand-written passes: topological order, each node over its new sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from glassgrad.ir.facts import rebuilt
from glassgrad.ir.uop import UOp, toposort

Change = Callable[[UOp, UOp], UOp]


def transform_nodes(nodes: Iterable[UOp], change: Change) -> dict[UOp, UOp]:
    """Every node -> what it becomes: `change(node, node over what its sources became)`.

    The nodes are in topological order, and all sources are among them.
    """
    done: dict[UOp, UOp] = {}
    for node in nodes:
        done[node] = change(node, rebuilt(node, done))
    return done


def transform(root: UOp, change: Change) -> UOp:
    """The expression after `change` has been applied to each of its nodes, sources first."""
    return transform_nodes(root.toposort(), change)[root]


def transform_all(roots: Sequence[UOp], change: Change) -> list[UOp]:
    """The same for several values that share nodes."""
    done = transform_nodes(toposort(roots), change)
    return [done[root] for root in roots]
