"""A computed value -> the graph that it was computed from: gradients flow through values in memory.

A tensor that was computed holds a BUFFER. Where a gradient may flow on to a parameter that is still
alive, the buffer keeps the operation that made it, its History. `with_history` writes a graph with
those operations in place of the buffers; their values are in memory, so only gradients see them.
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
from glassgrad.ir.uop import UOp, note
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
MAX_DEPTH = 500  # computed values one behind the other, before a loop is suspected to forget none


class History(NamedTuple):
    """The operation that computed a buffer. `depth` counts the computed values behind each other
    that lie between it and the parameters.
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
            note(made, buffer)
        return made


class Parameters:
    """Which values depend on parameters that are alive."""

    def __init__(self) -> None:
        self._unreached: set[UOp] = set()  # nodes from which no gradient gets to another parameter

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
    """True if a parameter holds this value, or a copy of it that it was given before a write."""
    if is_parameter(node) or (node.realized is not None and is_parameter(node.realized)):
        return True
    given = PRESERVED.get(node)
    copy = None if given is None else given()
    return copy is not None and is_parameter(copy)


def retain(value: UOp, buffer: UOp, parameters: Parameters, leaves: Iterable[UOp] = ()) -> None:
    """Let the buffer that holds a value keep what it was computed from, if gradients flow there.

    `leaves` are the buffers that it was computed from.
    """
    if buffer.history is not None or value.op in (BUFFER, CONST) or value.dtype.kind != "float":
        return
    if (version := version_preserved_by(value)) is not None and version.history is None:
        return  # a parameter that was given a copy of itself is a leaf still
    if parameters.are_behind(value):
        depths = [leaf.history.depth for leaf in leaves if leaf.history is not None]
        depth = 1 + max(depths, default=0)
        buffer.history = History(value.op, value.src, value.arg, value.origin, depth)
        if depth == MAX_DEPTH:
            _warn(value.origin)


def with_history(value: UOp) -> UOp:
    """A graph in which computed buffers are the operations that computed them."""
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
                note(made, node.realized)
    return done.get(value, value)


@contextmanager
def treat_as_leaves(tensors: Sequence[TensorCore]) -> Iterator[None]:
    """Let tensors in memory be leaves for a while: nothing inside has gradients behind them."""
    hidden = [(tensor.uop, tensor.uop.history) for tensor in tensors]
    for buffer, _ in hidden:
        buffer.history = None
    try:
        yield
    finally:
        for buffer, history in hidden:
            buffer.history = buffer.history or history


def forget_history(first_number: int) -> None:
    """Let buffers that were made since this number was the next one be leaves for good."""
    for tensor in live_tensors():
        if tensor.uop.number >= first_number:
            tensor.uop.history = None


def is_differentiable(holder: TensorCore | ViewGroup) -> bool:
    """True if gradients may flow on through what a tensor holds. A parameter that was written to is
    a leaf again, as after every step of an optimiser.
    """
    if isinstance(holder, ViewGroup):
        return True
    return holder._requires_grad is None or (holder._requires_grad and holder.uop.op is not ASSIGN)


def _functional(op: Ops, dtype: DType, src: tuple[UOp, ...], arg: Any) -> UOp:
    """An operation on other nodes of the same values; computing it a second time must not write."""
    if op is ASSIGN:
        target, value = src
        return after_write(target, value, arg)
    return UOp(op, dtype, src, arg)


def _sources(node: UOp) -> Sequence[UOp]:
    """Where a gradient flows from a node; from a computed buffer to what it was computed from."""
    if node.op is BUFFER:
        history: History | None = node.history
        return () if history is None else history.src
    return flow_sources(node)


def _nodes_with_history(value: UOp) -> list[UOp]:
    """All nodes under a value and under the histories of its buffers, sources first."""
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
