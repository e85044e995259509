"""Tensors that are copied and pickled: the same values in memory of their own.

`copy.deepcopy(model)` and `pickle.dumps(tensor)` compute what is not computed yet: a graph is no
value, and memory that others see as well is none to take along.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from glassgrad.base.dtype import dtypes
from glassgrad.tensor.record import dtype_of

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
    """How to make it again: a function, and what it takes."""
    flat = tensor.detach().contiguous().flatten()
    raw = flat.bitcast(dtypes.uint8).data().tobytes() if flat.numel() else b""
    kind, flags = tensor.dtype.name, (tensor.is_param, tensor._is_asked)
    return unpickled, (type(tensor), raw, kind, tensor.shape, tensor.device, flags)


def unpickled(
    cls: type[T],
    raw: bytes,
    kind: str,
    shape: tuple[int, ...],
    device: str,
    flags: tuple[bool, bool],
) -> T:
    """The tensor that was pickled; a file's elements come to the CPU."""
    dtype = dtype_of(kind)
    place = "CPU" if device.startswith("DISK") else device
    flat = cls(raw, dtype=dtypes.uint8).bitcast(dtype) if raw else cls.empty(0, dtype=dtype)
    made = flat.reshape(shape).to(place).clone().realize()
    made.is_param, made._is_asked = flags
    return made
