"""Tensors that are copied and pickled: the same values in memory of their own.

`copy.deepcopy(model)` and `pickle.dumps(tensor)` compute what is not computed yet: a graph is no
value, and memory that others see as well is none to take along.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.memory.view import View
from glassgrad.tensor.realize import look

if TYPE_CHECKING:
    from glassgrad.tensor.tensor import Tensor

T = TypeVar("T", bound="Tensor")


def copy_of(tensor: T) -> T:
    """Values, gradient and what is to be trained, and nothing shared."""
    made = tensor.detach().clone().realize()
    made.is_param, made._is_asked = tensor.is_param, tensor._is_asked
    made.grad = None if tensor.grad is None else copy_of(tensor.grad)
    return made


def pickled(tensor: Tensor) -> tuple[Any, ...]:
    """How to make it again: a function, and what it takes. Only what the tensor shows is copied,
    not all of the memory that it is a part of.
    """
    flags = tensor.is_param, tensor._is_asked
    return unpickled, (type(tensor), look(tensor.detach().clone()), flags)


def unpickled(cls: type[T], view: View, flags: tuple[bool, bool]) -> T:
    """The tensor that was pickled, without its gradient."""
    made = cls._of(UOp(Ops.BUFFER, view.dtype, (), view))
    made.is_param, made._is_asked = flags
    return made
