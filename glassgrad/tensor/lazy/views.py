"""Tensors that alias each other: a base value, its views, and how all of them see a write.

A tensor is a value or a view of one. Movement and basic indexing make views; every other operation
makes a value. A `ViewGroup` is a base value with its views: the node of all elements, and for each
view the movement ops that lead from there to the view. A write through any member makes a new base
node, and every member shows its part of that. Nothing here depends on what is in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import ref

from glassgrad.base.errors import ShapeError
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.ir.window import MOVEMENTS
from glassgrad.memory.storage import Storage
from glassgrad.tensor.lazy.exclusive import exclusive
from glassgrad.tensor.lazy.unrealized import set_node
from glassgrad.tensor.record import record

if TYPE_CHECKING:
    from glassgrad.tensor.core import TensorCore

ASSIGN, BUFFER = Ops.ASSIGN, Ops.BUFFER
BITCAST, DETACH, EXPAND, WINDOW = Ops.BITCAST, Ops.DETACH, Ops.EXPAND, Ops.WINDOW
RESHAPE = Ops.RESHAPE
Step = tuple[Ops, Any]
Steps = tuple[Step, ...]
DETACHED: Step = (DETACH, None)


class ViewGroup:
    """A base value and the live tensors that alias it: views of it, and perhaps the base tensor."""

    __slots__ = ("__weakref__", "members", "uop")

    uop: UOp
    _is_param = False  # only tensors are parameters

    def __init__(self, first: TensorCore) -> None:
        set_node(self, first.uop)
        self.members: dict[ref[TensorCore], None] = {}
        self.join(first, ())

    def join(self, tensor: TensorCore, steps: Steps) -> None:
        tensor._view_group, tensor._view_steps = self, steps
        self.members[ref(tensor, self._leave)] = None

    def _leave(self, member: ref[TensorCore]) -> None:
        """A member was freed. The last member left is no longer part of a group, unless it views
        shared memory.
        """
        self.members.pop(member, None)
        if len(self.members) == 1:
            for last in self.tensors():
                if views_shared_memory(last):
                    return
                last._view_group = None
            self.members.clear()

    def leave(self, tensor: TensorCore) -> None:
        """Remove a live member, which holds something else from now on."""
        tensor._view_group = None
        for member in [held for held in self.members if held() is tensor]:
            self._leave(member)

    def tensors(self) -> list[TensorCore]:
        return [tensor for held in list(self.members) if (tensor := held()) is not None]

    @exclusive
    def set_contents(self, uop: UOp) -> None:
        """Set new contents of the base value; every member shows its part."""
        set_node(self, uop)
        for tensor in self.tensors():
            set_node(tensor, apply_steps(uop, tensor._view_steps))


def apply_steps(uop: UOp, steps: Sequence[Step]) -> UOp:
    """The node of a view: movement steps applied to the base node."""
    for op, arg in steps:
        if op is BITCAST:
            uop = bitcast_node(uop, arg)
        elif op is not RESHAPE or uop.shape != arg:
            uop = record(op, uop.dtype, (uop,), arg)
    return uop


def bitcast_node(uop: UOp, dtype: Any) -> UOp:
    """The same bytes as another dtype, of any item size."""
    from glassgrad.tensor.tensor import Tensor

    return Tensor._wrap_raw(uop).bitcast(dtype).uop


def set_contents(tensor: TensorCore, uop: UOp) -> None:
    """Set new contents of a tensor that is a base value; its views see them."""
    if tensor._view_group is None:
        set_node(tensor, uop)
    elif not tensor._view_steps:
        tensor._view_group.set_contents(uop)
    else:
        tensor._view_group.leave(tensor)
        set_node(tensor, uop)


def base_node(tensor: TensorCore) -> UOp:
    """The node of the base value that a tensor views, or its own node."""
    return tensor.uop if tensor._view_group is None else tensor._view_group.uop


def view_steps(tensor: TensorCore) -> Steps:
    return () if tensor._view_group is None else tensor._view_steps


def root_storage(storage: Storage) -> Storage:
    """The storage that a sub-storage lies in."""
    return storage if storage.base is None else storage.base


def views_shared_memory(tensor: TensorCore) -> bool:
    """True if a tensor views memory that another library may write to at any time."""
    whole, home = tensor._view_group, tensor._share_token
    if home is None or whole is None or not tensor._view_steps or 0 in tensor.uop.shape:
        return False
    return share_token_of(whole.uop) is home


def leave_shared_memory(tensor: TensorCore) -> None:
    """Make a view that a captured function returns a value of its own, as replays return copies."""
    whole = tensor._view_group
    if whole is not None and views_shared_memory(tensor):
        whole.leave(tensor)
        tensor._share_token = None


def share_token_of(node: UOp) -> object | None:
    """The token of the tensors that may write to the memory under a node; None if it is not
    shared.
    """
    while node.op is ASSIGN and node.realized is None:  # a pending write
        node = node.src[0]
    held = node if node.op is BUFFER else node.realized
    return None if held is None else root_storage(held.arg.storage).holder


def reads_shared_memory(node: UOp) -> bool:
    """True if a node is a movement of shared memory. What was read there once is the value of the
    tensor that was realized, not of other views with the same node.
    """
    first = node
    while node.op in MOVEMENTS:
        node = node.src[0]
    return node is not first and share_token_of(node) is not None


def refuse_overlapping_write(steps: Sequence[Step], shape: tuple[int, ...]) -> None:
    """Raise an error for writes to views that show an element more than once."""
    for op, arg in steps:
        if op is EXPAND or (op is WINDOW and arg[1] > 1 and arg[1] > arg[2]):
            raise ShapeError(
                f"cannot write to a view of shape {shape} that shows elements more than once",
                hint="clone() it first, or write to the tensor that was expanded",
            )
