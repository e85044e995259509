"""Who holds a value that is not in memory: the few tensors that a computation concerns.

A program may hold thousands of tensors, and computing one value must not look at all of them. So
whoever begins to hold a node that is no buffer is listed, and is taken off the list when it is met
there with a buffer.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, cast
from weakref import ref

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp

if TYPE_CHECKING:
    from glassgrad.tensor.core import TensorCore
    from glassgrad.tensor.lazy.views import ViewGroup

BUFFER = Ops.BUFFER


class IdentityRef(ref[Any]):
    """A weak reference, equal to itself alone: tensors compare by their elements."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__


UNREALIZED: dict[IdentityRef, None] = {}  # in the order in which they became lazy
_forget = UNREALIZED.pop
_marking = Lock()


def set_node(holder: TensorCore | ViewGroup, uop: UOp) -> None:
    """Let a tensor, or what tensors share, hold another node."""
    holder.uop = uop
    if uop.op is not BUFFER:
        UNREALIZED[IdentityRef(holder, _forget)] = None
    if holder._is_param:
        mark_parameter(cast(Any, holder))


def unrealized_holders() -> list[TensorCore | ViewGroup]:
    """Everything that holds a node which is no buffer."""
    found: dict[int, TensorCore | ViewGroup] = {}
    for held in list(UNREALIZED):
        holder = held()
        if holder is None or holder.uop.op is BUFFER or id(holder) in found:
            UNREALIZED.pop(held, None)
        else:
            found[id(holder)] = holder
    return list(found.values())


def mark_parameter(tensor: TensorCore) -> None:
    """Let the node that a parameter holds know of it."""
    node = tensor.uop
    if node.parameters is None:
        with _marking:  # zeros of two threads may be one node
            if node.parameters is None:
                node.parameters = {}
    node.parameters[IdentityRef(tensor, node.parameters.pop)] = None


def is_parameter(node: UOp) -> bool:
    """Whether a parameter that is alive holds this node."""
    found = node.parameters
    return bool(found) and any(
        tensor.uop is node and tensor.is_param
        for held in list(found)
        if (tensor := held()) is not None
    )
