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
    """What two or more living tensors share: they are views of it, or one of them is all of it."""

    __slots__ = ("__weakref__", "members", "uop")

    uop: UOp
    _is_param = False  # tensors are

    def __init__(self, first: TensorCore) -> None:
        set_node(self, first.uop)
        self.members: dict[ref[TensorCore], None] = {}
        self.join(first, ())

    def join(self, tensor: TensorCore, steps: Steps) -> None:
        tensor._view_group, tensor._view_steps = self, steps
        self.members[ref(tensor, self._leave)] = None

    def _leave(self, member: ref[TensorCore]) -> None:
        """A tensor is gone. One that is left alone shares nothing, and is a value again, unless it
        shows a part of memory that others see.
        """
        self.members.pop(member, None)
        if len(self.members) == 1:
            for last in self.tensors():
                if views_shared_memory(last):
                    return
                last._view_group = None
            self.members.clear()

    def leave(self, tensor: TensorCore) -> None:
        """A tensor that lives on holds something else from now on."""
        tensor._view_group = None
        for member in [held for held in self.members if held() is tensor]:
            self._leave(member)

    def tensors(self) -> list[TensorCore]:
        return [tensor for held in list(self.members) if (tensor := held()) is not None]

    @exclusive
    def set_contents(self, uop: UOp) -> None:
        """New contents, which every member sees its part of."""
        set_node(self, uop)
        for tensor in self.tensors():
            set_node(tensor, apply_steps(uop, tensor._view_steps))


def apply_steps(uop: UOp, steps: Sequence[Step]) -> UOp:
    """What a view shows of a whole."""
    for op, arg in steps:
        if op is BITCAST:
            uop = bitcast_node(uop, arg)
        elif op is not RESHAPE or uop.shape != arg:
            uop = record(op, uop.dtype, (uop,), arg)
    return uop


def bitcast_node(uop: UOp, dtype: Any) -> UOp:
    """The same bytes as another dtype, whatever the sizes of items."""
    from glassgrad.tensor.tensor import Tensor

    return Tensor._wrap_raw(uop).bitcast(dtype).uop


def set_contents(tensor: TensorCore, uop: UOp) -> None:
    """New contents for a tensor that is all of a value; whoever views it sees them."""
    if tensor._view_group is None:
        set_node(tensor, uop)
    elif not tensor._view_steps:
        tensor._view_group.set_contents(uop)
    else:
        tensor._view_group.leave(tensor)
        set_node(tensor, uop)


def base_node(tensor: TensorCore) -> UOp:
    """All elements of what a tensor is a view of."""
    return tensor.uop if tensor._view_group is None else tensor._view_group.uop


def view_steps(tensor: TensorCore) -> Steps:
    return () if tensor._view_group is None else tensor._view_steps


def root_storage(storage: Storage) -> Storage:
    """The storage that a part of one lies in."""
    return storage if storage.base is None else storage.base


def views_shared_memory(tensor: TensorCore) -> bool:
    """Whether a tensor is a view of memory that others see and may write to at any time."""
    whole, home = tensor._view_group, tensor._share_token
    if home is None or whole is None or not tensor._view_steps or 0 in tensor.uop.shape:
        return False
    return share_token_of(whole.uop) is home


def leave_shared_memory(tensor: TensorCore) -> None:
    """Let a view that a captured function returns be the copy that it holds: replays return one."""
    whole = tensor._view_group
    if whole is not None and views_shared_memory(tensor):
        whole.leave(tensor)
        tensor._share_token = None


def share_token_of(node: UOp) -> object | None:
    """Who may write to the memory that a node is or is written to, if others see it."""
    while node.op is ASSIGN and node.realized is None:  # a write that waits
        node = node.src[0]
    held = node if node.op is BUFFER else node.realized
    return None if held is None else root_storage(held.arg.storage).holder


def refuse_overlapping_write(steps: Sequence[Step], shape: tuple[int, ...]) -> None:
    """A write to an element that is shown more than once would have no meaning."""
    for op, arg in steps:
        if op is EXPAND or (op is WINDOW and arg[1] > 1 and arg[1] > arg[2]):
            raise ShapeError(
                f"cannot write to a view of shape {shape} that shows elements more than once",
                hint="clone() it first, or write to the tensor that was expanded",
            )
