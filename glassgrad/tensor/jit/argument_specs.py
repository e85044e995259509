"""Arguments -> ArgumentSpecs: what a captured call relies on in its argument tensors."""

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
    """Shape, dtype, device and strides of an argument, and which arguments share its memory."""

    shape: Ints
    dtype: DType
    device: str
    strides: Ints
    alias: int  # number of the first argument in the same memory
    distance: int  # offset from that argument, in elements

    def __str__(self) -> str:
        return f"{self.shape} {self.dtype.name} on {self.device}"


def shapes_dtypes_devices(arguments: Iterable[TensorCore]) -> tuple[tuple[Ints, str, str], ...]:
    """The part of the capture key that comes from tensors."""
    return tuple([(_shape(tensor), tensor.dtype.name, tensor.device) for tensor in arguments])


def _shape(tensor: TensorCore) -> Ints:
    """The shape with the values of variables: each size has memory of its own."""
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
    """Raise an error unless the arguments have the captured shapes, dtypes and devices."""
    for number, (new, old) in enumerate(zip(found, wanted, strict=True)):
        if new[:3] != old[:3]:
            raise CaptureError(
                f"argument {number} of a captured function is {new}; it was captured with {old}",
                hint=hint,
            )
