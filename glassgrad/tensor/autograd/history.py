"""A realized value -> the graph that computed it, so that gradients flow through values in memory.

A realized tensor holds a BUFFER. If a gradient may flow on to a live parameter, the buffer keeps
the operation that computed it, its History. `with_history` rebuilds the graph with these operations
in place of the buffers. Their values are in memory, so only gradients use them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

from glassgrad.base.dtype import DType
from glassgrad.base.errors import GraphWarning
from glassgrad.base.origin import Origin
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, set_realized
from glassgrad.tensor.autograd.derivatives import after_write
from glassgrad.tensor.autograd.gradient import flow_sources
from glassgrad.tensor.core import TensorCore, live_tensors
from glassgrad.tensor.lazy.buffer_versions import (
    OVERWRITTEN,
    PRESERVED,
    surviving_copy,
    version_preserved_by,
)
from glassgrad.tensor.lazy.unrealized import is_parameter
from glassgrad.tensor.lazy.views import ViewGroup

BUFFER, CONST, ASSIGN = Ops.BUFFER, Ops.CONST, Ops.ASSIGN
MAX_DEPTH = 500  # chained realized values; beyond, a loop probably keeps all its steps by mistake


class History(NamedTuple):
    """The operation that computed a buffer. `depth` is the length of the chain of realized values
    between it and the parameters.
    """

    op: Ops
    src: tuple[UOp, ...]
    arg: Any
    origin: Origin | None
    depth: int

    def node(self, buffer: UOp, src: tuple[UOp, ...]) -> UOp:
        """The operation as a node over these sources. Its value is in the buffer, unless that was
        overwritten.
        """
        made = _functional(self.op, buffer.dtype, src, self.arg)
        made.origin = made.origin or self.origin
        if made.op is not BUFFER and buffer.arg not in OVERWRITTEN:
            set_realized(made, buffer)
        return made


class Parameters:
    """Caches which values depend on live parameters."""

    def __init__(self) -> None:
        self._unreached: set[UOp] = set()  # nodes known to depend on no parameter

    def are_behind(self, value: UOp) -> bool:
        """True if a gradient of this value flows to a parameter other than itself."""
        seen, stack = {value}, list(_sources(value))
        while stack:
            node = stack.pop()
            if node in seen or node.dtype.kind != "float":
                continue
            if _holds_parameter(node):
                return True
            if node in self._unreached:
                continue
            seen.add(node)
            stack.extend(_sources(node))
        self._unreached |= seen
        return False


def _holds_parameter(node: UOp) -> bool:
    """True if a parameter holds this value, or the preserved copy of it."""
    if is_parameter(node) or (node.realized is not None and is_parameter(node.realized)):
        return True
    given = PRESERVED.get(node)
    copy = None if given is None else given()
    return copy is not None and is_parameter(copy)


def retain(value: UOp, buffer: UOp, parameters: Parameters, leaves: Iterable[UOp] = ()) -> None:
    """Keep the operation that computed a buffer, if gradients flow through it.

    `leaves` are the buffers that the value was computed from.
    """
    if buffer.history is not None or value.op in (BUFFER, CONST) or value.dtype.kind != "float":
        return
    if (version := version_preserved_by(value)) is not None and version.history is None:
        return  # the preserved copy of a leaf is a leaf
    if parameters.are_behind(value):
        depths = [leaf.history.depth for leaf in leaves if leaf.history is not None]
        depth = 1 + max(depths, default=0)
        buffer.history = History(value.op, value.src, value.arg, value.origin, depth)
        if depth == MAX_DEPTH:
            _warn(value.origin)


def with_history(value: UOp) -> UOp:
    """The graph with the operations that computed buffers in place of the buffers."""
    done: dict[UOp, UOp] = {}
    for node in _nodes_with_history(value):
        history: History | None = node.history
        old = node.src if history is None else history.src
        src = tuple([done.get(source, source) for source in old])
        if history is not None:
            done[node] = history.node(node, src)
        elif (copy := surviving_copy(node)) is not None:
            done[node] = copy
        elif src != old:
            done[node] = made = _functional(node.op, node.dtype, src, node.arg)
            made.origin = made.origin or node.origin
            if node.realized is not None and node.realized.arg not in OVERWRITTEN:
                set_realized(made, node.realized)
    return done.get(value, value)


@contextmanager
def treat_as_leaves(tensors: Sequence[TensorCore]) -> Iterator[None]:
    """A context in which realized tensors have no history."""
    hidden = [(tensor.uop, tensor.uop.history) for tensor in tensors]
    for buffer, _ in hidden:
        buffer.history = None
    try:
        yield
    finally:
        for buffer, history in hidden:
            buffer.history = buffer.history or history


def forget_history(first_number: int) -> None:
    """Drop the histories of all buffers made since `first_number` was the next node number."""
    for tensor in live_tensors():
        if tensor.uop.number >= first_number:
            tensor.uop.history = None


def is_differentiable(holder: TensorCore | ViewGroup) -> bool:
    """True if gradients may flow through what a tensor holds. A parameter is a leaf again after a
    write, as after every step of an optimiser.
    """
    if isinstance(holder, ViewGroup):
        return True
    return holder._requires_grad is None or (holder._requires_grad and holder.uop.op is not ASSIGN)


def _functional(op: Ops, dtype: DType, src: tuple[UOp, ...], arg: Any) -> UOp:
    """The operation on other nodes of the same values; an ASSIGN becomes an expression that writes
    nothing.
    """
    if op is ASSIGN:
        target, value = src
        return after_write(target, value, arg)
    return UOp(op, dtype, src, arg)


def _sources(node: UOp) -> Sequence[UOp]:
    """The sources that gradients flow to; those of the history for a realized buffer."""
    if node.op is BUFFER:
        history: History | None = node.history
        return () if history is None else history.src
    return flow_sources(node)


def _nodes_with_history(value: UOp) -> list[UOp]:
    """All nodes under a value and under the histories of its buffers, in topological order."""
    seen = {value}
    stack = [value]
    while stack:
        node = stack.pop()
        history: History | None = node.history
        for source in node.src if history is None else history.src:
            if source not in seen:
                seen.add(source)
                stack.append(source)
    return sorted(seen, key=lambda node: node.number)


def _warn(origin: Origin | None) -> None:
    where = "" if origin is None else f"\n  {origin}"
    warnings.warn(
        f"{MAX_DEPTH} values were computed one from the other, and each keeps what it was computed "
        f"from, since a parameter may get a gradient through it{where}\n"
        "  hint: if no gradient is wanted, compute under Tensor.no_grad(), or detach() the value "
        "that is carried along",
        cast(Any, GraphWarning),
        stacklevel=3,
    )
