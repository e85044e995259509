"""The holders of values that are not in memory: the few tensors that a computation concerns.

A program may hold thousands of tensors, and computing one value must not look at all of them. So
every holder of a node other than a BUFFER is listed when it gets the node, and removed when it is
found to hold a BUFFER.
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
    """A weak reference that compares by identity: tensors themselves compare by elements."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__


UNREALIZED: dict[IdentityRef, None] = {}  # in the order in which they became lazy
_forget = UNREALIZED.pop
_marking = Lock()


def set_node(holder: TensorCore | ViewGroup, uop: UOp) -> None:
    """Set the node that a tensor or a view group holds."""
    holder.uop = uop
    if uop.op is not BUFFER:
        UNREALIZED[IdentityRef(holder, _forget)] = None
    if holder._is_param:
        mark_parameter(cast(Any, holder))


def unrealized_holders() -> list[TensorCore | ViewGroup]:
    """Every tensor and view group that holds a node other than a BUFFER."""
    found: dict[int, TensorCore | ViewGroup] = {}
    for held in list(UNREALIZED):
        holder = held()
        if holder is None or holder.uop.op is BUFFER or id(holder) in found:
            UNREALIZED.pop(held, None)
        else:
            found[id(holder)] = holder
    return list(found.values())


def mark_parameter(tensor: TensorCore) -> None:
    """Register a parameter with the node that it holds."""
    node = tensor.uop
    if node.parameters is None:
        with _marking:  # equal constants of two threads are one node
            if node.parameters is None:
                node.parameters = {}
    node.parameters[IdentityRef(tensor, node.parameters.pop)] = None


def is_parameter(node: UOp) -> bool:
    """True if a live parameter holds this node."""
    found = node.parameters
    return bool(found) and any(
        tensor.uop is node and tensor.is_param
        for held in list(found)
        if (tensor := held()) is not None
    )
