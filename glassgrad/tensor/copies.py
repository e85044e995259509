"""Tensors -> copies and pickles of them: the same values in memory of their own.

`copy.deepcopy(model)` and `pickle.dumps(tensor)` realize lazy tensors first. Only values are
copied, never graphs or shared memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.memory.view import View
from glassgrad.tensor.lazy.realize import realized_view
from glassgrad.tensor.record import record

if TYPE_CHECKING:
    from glassgrad.tensor.tensor import Tensor

T = TypeVar("T", bound="Tensor")


def copy_of(tensor: T) -> T:
    """A copy of the value, the gradient and the flags that shares no memory with the tensor."""
    made = tensor.detach().clone().realize()
    made.is_param, made._requires_grad = tensor.is_param, tensor._requires_grad
    made.grad = None if tensor.grad is None else copy_of(tensor.grad)
    return made


def copy_if_shared(value: UOp) -> UOp:
    """A copy if the value lies in memory that another library may write to, such as an array's: a
    tensor that adopted that memory would write to it, too.
    """
    node = value
    while node.op is not Ops.BUFFER and len(node.src) == 1:
        node = node.src[0]
    if node.op is not Ops.BUFFER:
        return value
    storage = node.arg.storage
    storage = storage if storage.base is None else storage.base
    is_shared = storage.options.external_ptr is not None and not storage.readonly
    return record(Ops.CONTIGUOUS, value.dtype, (value,)) if is_shared else value


def pickled(tensor: Tensor) -> tuple[Any, ...]:
    """The `__reduce__` value of a tensor. Only the elements that the tensor shows are copied, not
    the whole storage.
    """
    flags = tensor.is_param, tensor._requires_grad
    return unpickled, (type(tensor), realized_view(tensor.detach().clone()), flags)


def unpickled(cls: type[T], view: View, flags: tuple[bool, bool | None]) -> T:
    """The tensor that was pickled, without its gradient."""
    made = cls._from_uop(UOp(Ops.BUFFER, view.dtype, (), view))
    made.is_param, made._requires_grad = flags
    return made
