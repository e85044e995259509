"""Memory that is shared with other libraries: which tensors own it, and what a view exports.

Imported memory, and memory of ours that was exported, changes under the tensor that owns it and
under its views; only these may write to it. Any other tensor whose value happens to lie there gets
a copy before it could notice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.ir.window import window_of
from glassgrad.memory.allocator import is_file
from glassgrad.memory.storage import Storage
from glassgrad.memory.view import View
from glassgrad.tensor.core import TensorCore, live_tensors
from glassgrad.tensor.lazy.buffer_versions import current_buffer, target_storage
from glassgrad.tensor.lazy.exclusive import exclusive
from glassgrad.tensor.lazy.realize import proxy_tensor, realized_view
from glassgrad.tensor.lazy.unrealized import set_node
from glassgrad.tensor.lazy.views import apply_steps, base_node, root_storage, view_steps

T = TypeVar("T", bound=TensorCore)


@exclusive
def claim_memory(tensor: T) -> T:
    """Make a tensor the owner of the memory that it holds."""
    held = current_buffer(base_node(tensor))
    if held is not None:
        _claim(tensor, root_storage(held.arg.storage))
    return tensor


@exclusive
def claim_shared_memory(tensors: Iterable[TensorCore]) -> None:
    """Make several tensors over one memory its common owners: all of them see and write it."""
    for tensor in tensors:
        storage = root_storage(tensor.uop.arg.storage)
        storage.holder = storage.holder or object()
        tensor._share_token = storage.holder


@exclusive
def lend_memory(tensor: TensorCore) -> View:
    """The memory of a tensor, for others to read and write.

    A view exports a window on the memory of its base. Where strides cannot express the window, as
    for a flattened transposed matrix, it exports a copy.
    """
    if is_file(tensor.device):
        return realized_view(tensor)
    _make_exclusive(tensor)
    node = base_node(tensor)
    window = window_of(apply_steps(current_buffer(node) or node, view_steps(tensor)))
    return realized_view(tensor) if window is None else window


def _make_exclusive(tensor: TensorCore) -> None:
    """Realize the base value of a tensor in memory that no other value lies in."""
    whole = tensor._view_group
    base = tensor if whole is None else proxy_tensor(whole.uop)
    storage = root_storage(realized_view(base).storage)
    node = base_node(tensor)
    if storage.holder is not None and storage.holder is tensor._share_token:
        return
    if storage.holder is not None or _is_held_by_others(tensor, storage):
        copy = TensorCore._wrap_raw(UOp(Ops.CONTIGUOUS, node.dtype, (node,), 1))
        storage = root_storage(realized_view(copy).storage)
        if whole is None:
            set_node(tensor, copy.uop)
        else:
            whole.set_contents(copy.uop)
    elif whole is not None:
        whole.set_contents(node)  # drops windows that its views were computed into
    _claim(tensor, storage)


def _claim(tensor: TensorCore, storage: Storage) -> None:
    home = storage.holder = object()
    for one in [tensor] if tensor._view_group is None else tensor._view_group.tensors():
        one._share_token = home


def _is_held_by_others(tensor: TensorCore, storage: Storage) -> bool:
    whole = tensor._view_group
    for other in live_tensors():
        if other is not tensor and (whole is None or other._view_group is not whole):
            held = current_buffer(other.uop)
            if held is None and other.uop.op is Ops.ASSIGN:  # a pending write
                found = target_storage(other.uop)
            elif held is not None:
                found = held.arg.storage
            else:
                continue
            if root_storage(found) is storage:
                return True
    return False
