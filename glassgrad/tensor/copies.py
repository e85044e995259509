"""Tensors that are copied and pickled: the same values in memory of their own.

`copy.deepcopy(model)` and `pickle.dumps(tensor)` compute what is not computed yet: a graph is no
value, and memory that others see as well is none to take along.
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
    """Values, gradient and what is to be trained, and nothing shared."""
    made = tensor.detach().clone().realize()
    made.is_param, made._requires_grad = tensor.is_param, tensor._requires_grad
    made.grad = None if tensor.grad is None else copy_of(tensor.grad)
    return made


def copy_if_shared(value: UOp) -> UOp:
    """A copy of memory that others may write to, as an array's: a tensor that takes it over would
    write to it, too.
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
    """How to make it again: a function, and what it takes. Only what the tensor shows is copied,
    not all of the memory that it is a part of.
    """
    flags = tensor.is_param, tensor._requires_grad
    return unpickled, (type(tensor), realized_view(tensor.detach().clone()), flags)


def unpickled(cls: type[T], view: View, flags: tuple[bool, bool | None]) -> T:
    """The tensor that was pickled, without its gradient."""
    made = cls._from_uop(UOp(Ops.BUFFER, view.dtype, (), view))
    made.is_param, made._requires_grad = flags
    return made
