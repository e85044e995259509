"""Values to compute -> intermediate values to materialize, because later computations read them.

An intermediate value is computed inside of its consumer, and again inside of the next one. State
that a program carries from one computation to the next would then be recomputed from the start of
the program each time. So these values get memory when they are read: parameters and tensors that
were written to, random weights included; every expensive value the second time it is read; and what
was made of a value that was inlined while a tensor held it and that no tensor holds any more (the
next value of a running average, say). A parameter that nothing reads, but that is made of values
computed now, is computed with them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from operator import attrgetter
from weakref import WeakSet, ref

from glassgrad.base.errors import GraphWarning
from glassgrad.base.origin import Origin
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.lazy.views import ViewGroup, views_shared_memory

BUFFER, CONST, ASSIGN = Ops.BUFFER, Ops.CONST, Ops.ASSIGN
NOT_LAZY = frozenset((BUFFER, CONST, ASSIGN))  # in memory, without memory, or written in any case
EXPENSIVE = frozenset((Ops.REDUCE, Ops.SCAN, Ops.DEFERRED, Ops.THREEFRY))
NUMBER = attrgetter("number")
MAX_CHEAP_NODES = 32  # elementwise nodes that are cheaper to recompute than to store
ASSIGNED: WeakSet[UOp] = WeakSet()  # assigned contents that have no memory yet
CARRIED_LINES: set[Origin] = set()  # origins of values that later computations read
MAX_LINES = 1000


class InlinedValues:
    """Values that were computed inside of their consumers while a tensor held them."""

    def __init__(self) -> None:
        self._held: dict[ref[UOp], None] = {}

    def add(self, node: UOp) -> None:
        self._held[ref(node, self._held.pop)] = None

    def __bool__(self) -> bool:
        return bool(self._held)

    def nodes(self) -> list[UOp]:
        """Those that are alive and still not in memory."""
        pairs = [(held, node) for held in list(self._held) if (node := held()) is not None]
        for held, _ in [pair for pair in pairs if pair[1].realized is not None]:
            self._held.pop(held, None)
        return [node for _, node in pairs if node.realized is None]


INLINED = InlinedValues()


def track_replacements(changed: dict[UOp, UOp]) -> None:
    """Nodes were replaced by equal ones: what is known of the old applies to the new."""
    for node in INLINED.nodes():
        if (now := changed.get(node)) is not None:
            INLINED.add(now)
    ASSIGNED.update([now for node in list(ASSIGNED) if (now := changed.get(node)) is not None])


def values_to_carry(values: set[UOp], nodes: set[UOp], lazy: Iterable[TensorCore]) -> list[UOp]:
    """Nodes under the values to compute into memory together with them.

    `lazy` are tensors that hold other values which are not in memory.
    """
    again = [node for node in INLINED.nodes() if node in nodes and _is_expensive(node)]
    for node in again:
        _remember_line(node.origin)
    ASSIGNED.difference_update([node for node in ASSIGNED if node.realized is not None])
    found = dict.fromkeys(
        [*again, *(node for node in list(ASSIGNED) if _is_assigned_state(node, nodes))]
    )
    lazy = list(lazy)
    held = values.union([tensor.uop for tensor in lazy])
    dropped = {node for node in INLINED.nodes() if node in nodes and node not in held}
    for tensor in lazy:
        node = tensor.uop
        if node in nodes and node not in found:
            if _is_carried_on_first_read(tensor):
                found[node] = None
            elif dropped and not dropped.isdisjoint(_nodes_under(node)):
                _remember_line(node.origin)
                found[node] = None
            else:
                INLINED.add(node)
        elif node not in found and tensor.is_param and _reads_expensive(node, nodes):
            found[node] = None
    return sorted([node for node in found if node not in values], key=NUMBER)


def unrealized_tensors(holders: Iterable[TensorCore | ViewGroup]) -> list[TensorCore]:
    """The tensors among the holders whose value is not in memory and may be stored there."""
    tensors = [holder for holder in holders if isinstance(holder, TensorCore)]
    tensors = [tensor for tensor in tensors if not views_shared_memory(tensor)]
    return [t for t in tensors if t.uop.op not in NOT_LAZY and t.uop.realized is None]


def _is_carried_on_first_read(tensor: TensorCore) -> bool:
    if tensor.uop.origin in CARRIED_LINES:
        return True
    ops = _ops_under(tensor.uop) if tensor.is_param else frozenset()
    return not EXPENSIVE.isdisjoint(ops) or BUFFER in ops


def _reads_expensive(parameter: UOp, nodes: set[UOp]) -> bool:
    """True if a lazy parameter is made of expensive values computed now, such as those of the
    previous step in `w = (w - rate * w.grad).detach()` before the loss is read.
    """
    return any(node.op in EXPENSIVE and node in nodes for node in _nodes_under(parameter))


def _nodes_under(value: UOp) -> Iterator[UOp]:
    """All nodes that must be computed for a value."""
    seen, stack = {value}, [value]
    while stack:
        node = stack.pop()
        if node.realized is None:
            yield node
            stack += [source for source in node.src if source not in seen]
            seen.update(node.src)


def _is_assigned_state(updated: UOp, nodes: set[UOp]) -> bool:
    """True if assigned contents are read by this computation and are not constant."""
    if updated not in nodes or updated.op in NOT_LAZY or updated.realized is not None:
        return False
    ops = _ops_under(updated)
    return BUFFER in ops or not EXPENSIVE.isdisjoint(ops)


def _is_expensive(node: UOp) -> bool:
    return not EXPENSIVE.isdisjoint(_ops_under(node))


def _ops_under(value: UOp) -> set[Ops]:
    """The ops between a value and memory; a graph of more than MAX_CHEAP_NODES counts as
    expensive.
    """
    ops: set[Ops] = set()
    seen, stack = {value}, [value]
    while stack:
        node = stack.pop()
        if node.realized is not None:
            ops.add(BUFFER)
            continue
        ops.add(node.op)
        stack += [source for source in node.src if source not in seen]
        seen.update(node.src)
        if len(seen) > MAX_CHEAP_NODES:
            ops.add(Ops.DEFERRED)
            break
    return ops


def _remember_line(line: Origin | None) -> None:
    """Values made on this line are read again: from now on they are stored at their first read."""
    if line is not None:
        if len(CARRIED_LINES) >= MAX_LINES:
            CARRIED_LINES.clear()
        CARRIED_LINES.add(line)


class GraphGrowth:
    """The sizes of the graphs that one line of the program computed in successive steps."""

    MAX_STEPS = 30  # consecutive steps with a larger graph each, before the warning
    MIN_NODES = 200  # smaller graphs give no warning

    def __init__(self) -> None:
        self.size = 0
        self.steps = 0
        self.has_warned = False

    def notice(self, size: int, line: Origin) -> None:
        self.steps = self.steps + 1 if size > self.size else 0
        self.size = size
        if self.steps >= self.MAX_STEPS and size >= self.MIN_NODES and not self.has_warned:
            self.has_warned = True
            warnings.warn(
                f"the graph that is computed here grew in {self.steps} steps in a row, to {size} "
                f"operations: each step computes again what the ones before did\n  {line}\n"
                "  hint: realize() the values that are carried from step to step",
                GraphWarning,
                stacklevel=2,
            )


GROWTH_BY_LINE: dict[Origin, GraphGrowth] = {}


def warn_if_graph_grows(value: UOp, size: int) -> None:
    """Warn if the graphs computed by one line grow from step to step."""
    line = value.origin
    if line is not None:
        if len(GROWTH_BY_LINE) >= MAX_LINES and line not in GROWTH_BY_LINE:
            GROWTH_BY_LINE.clear()
        GROWTH_BY_LINE.setdefault(line, GraphGrowth()).notice(size, line)
