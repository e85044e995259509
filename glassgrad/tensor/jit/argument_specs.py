"""arguments -> Layouts: what a captured call relies on in the tensors that it is given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from glassgrad.base.dtype import DType
from glassgrad.base.errors import CaptureError
from glassgrad.ir.shape import Sizes
from glassgrad.ir.size import bindings, concrete
from glassgrad.memory.storage import Storage
from glassgrad.memory.view import View
from glassgrad.tensor.core import TensorCore

Ints = tuple[int, ...]


class ArgumentSpec(NamedTuple):
    """What an argument is, and where other arguments lie in it."""

    shape: Ints
    dtype: DType
    device: str
    strides: Ints
    alias: int  # the first argument in the same memory
    distance: int  # elements from its beginning to this one's

    def __str__(self) -> str:
        return f"{self.shape} {self.dtype.name} on {self.device}"


def shapes_dtypes_devices(arguments: Iterable[TensorCore]) -> tuple[tuple[Ints, str, str], ...]:
    """Shapes, dtypes and devices, each combination of which has a capture of its own."""
    return tuple([(_shape(tensor), tensor.dtype.name, tensor.device) for tensor in arguments])


def _shape(tensor: TensorCore) -> Ints:
    """With the values of variables: memory of each size is captured on its own."""
    shape = tensor.uop.shape
    return concrete(shape, bindings(shape)) if Sizes.exist else shape


def argument_specs(arguments: Iterable[TensorCore]) -> list[ArgumentSpec]:
    first: dict[Storage, tuple[int, int]] = {}
    found = []
    for number, tensor in enumerate(arguments):
        view: View = tensor.uop.arg
        alias, start = first.setdefault(view.storage, (number, view.offset))
        where = (alias, view.offset - start)
        found.append(ArgumentSpec(view.shape, view.dtype, view.device, view.strides, *where))
    return found


def refuse_other_specs(
    found: Sequence[ArgumentSpec], wanted: Sequence[ArgumentSpec], hint: str
) -> None:
    """Arguments must have the shapes, dtypes and devices that were captured."""
    for number, (new, old) in enumerate(zip(found, wanted, strict=True)):
        if new[:3] != old[:3]:
            raise CaptureError(
                f"argument {number} of a captured function is {new}; it was captured with {old}",
                hint=hint,
            )
