"""Memory that others see, too: which tensor it belongs to, and what of it a view lends.

Memory of another library that a tensor shares, and memory of ours that was handed to one, changes
under the tensor that it belongs to and under the views of that; only they may write to it. Every
other tensor that happens to have its value there is given a copy before that could be noticed.
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
from glassgrad.tensor.core import TensorCore, living
from glassgrad.tensor.lazy.buffer_versions import current, storage_of
from glassgrad.tensor.lazy.exclusive import exclusive
from glassgrad.tensor.lazy.realize import look, stand_in
from glassgrad.tensor.lazy.unrealized import hold
from glassgrad.tensor.lazy.views import moved, node_of_whole, root_of, steps_of

T = TypeVar("T", bound=TensorCore)


@exclusive
def claimed(tensor: T) -> T:
    """The memory that this tensor holds is its own, whoever else sees it."""
    held = current(node_of_whole(tensor))
    if held is not None:
        _claim(tensor, root_of(held.arg.storage))
    return tensor


@exclusive
def claim_together(tensors: Iterable[TensorCore]) -> None:
    """Tensors over the same memory that stand for one: all of them see and write it."""
    for tensor in tensors:
        storage = root_of(tensor.uop.arg.storage)
        storage.holder = storage.holder or object()
        tensor._home = storage.holder


@exclusive
def lend(tensor: TensorCore) -> View:
    """The memory of a tensor, for others to read and to write.

    A view lends a window on the memory of what it is a view of. Where strides cannot say that, as
    for a transposed matrix that was flattened, others see a copy.
    """
    if is_file(tensor.device):
        return look(tensor)
    _make_exclusive(tensor)
    node = node_of_whole(tensor)
    window = window_of(moved(current(node) or node, steps_of(tensor)))
    return look(tensor) if window is None else window


def _make_exclusive(tensor: TensorCore) -> None:
    """Compute all of what a tensor is a view of, in memory that no other value lies in."""
    whole = tensor._whole
    storage = root_of(look(tensor if whole is None else stand_in(whole.uop)).storage)
    node = node_of_whole(tensor)
    if storage.holder is not None and storage.holder is tensor._home:
        return
    if storage.holder is not None or _is_held_by_others(tensor, storage):
        copy = TensorCore._handed(UOp(Ops.CONTIGUOUS, node.dtype, (node,), 1))
        storage = root_of(look(copy).storage)
        if whole is None:
            hold(tensor, copy.uop)
        else:
            whole.show(copy.uop)
    elif whole is not None:
        whole.show(node)  # without what was computed of its views before
    _claim(tensor, storage)


def _claim(tensor: TensorCore, storage: Storage) -> None:
    home = storage.holder = object()
    for one in [tensor] if tensor._whole is None else tensor._whole.tensors():
        one._home = home


def _is_held_by_others(tensor: TensorCore, storage: Storage) -> bool:
    whole = tensor._whole
    for other in living():
        if other is not tensor and (whole is None or other._whole is not whole):
            held = current(other.uop)
            if held is None and other.uop.op is Ops.ASSIGN:  # a write that waits
                found = storage_of(other.uop)
            elif held is not None:
                found = held.arg.storage
            else:
                continue
            if root_of(found) is storage:
                return True
    return False
