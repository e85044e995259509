"""Nested arguments and results <-> their tensors, in containers of any depth."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Set
from copy import copy
from types import FunctionType
from typing import Any
from weakref import ref

from glassgrad.base.errors import CaptureError
from glassgrad.ir.symbolic import SymbolicInt
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.jit.guards.attributes import dict_of
from glassgrad.tensor.jit.guards.kinds import PLAIN_TYPES, is_numpy_array, is_plain

TENSOR = "a tensor"  # in place of a tensor in a key


class TensorPlaceholder:
    """A tensor in the template of a result."""


class IdentityKey(ref[Any]):
    """An object in a key: equal to itself alone, and to nothing after the object died."""

    __slots__ = ("number",)
    number: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and self() is not None and self() is other()

    def __hash__(self) -> int:
        return self.number


def flatten(value: Any, found: list[Any], objects: list[Any] | None = None) -> Hashable:
    """Collect the tensors and sizes inside of a value; the rest becomes a hashable key.

    Objects whose contents are not part of the key are collected in `objects`. Without that list,
    the value is a result.

    >>> found = []
    >>> flatten((Tensor([1]), {"n": 2}), found, []), len(found)
    (('tuple', 'a tensor', ('dict', 'n', (<class 'int'>, '2'))), 1)
    """
    if isinstance(value, TensorCore):
        found.append(value)
        return TENSOR
    kind = type(value)
    if kind is SymbolicInt:
        if objects is None:
            _refuse_size(value)
        found.append(value.size)
        return TENSOR, value.size.uop
    if kind in PLAIN_TYPES:  # 1, 1.0 and True are equal, but are not the same constant
        return kind, repr(value)
    if isinstance(value, (tuple, list)):
        return kind.__name__, *[flatten(item, found, objects) for item in value]
    if isinstance(value, dict):
        inside = [part for k, v in value.items() for part in (k, flatten(v, found, objects))]
        return "dict", *inside
    if (names := _field_names(value)) is not None:
        return kind, *[flatten(getattr(value, name), found, objects) for name in names]
    if objects is not None:
        return _constant(value, objects)
    _refuse_unfinished(value)
    return None


def _refuse_size(size: SymbolicInt) -> None:
    """Raise an error for a returned size, which the next call may change."""
    raise CaptureError(
        f"a captured function cannot return {size}: replays would not change it",
        hint=f"return Tensor({size})",
    )


def _field_names(value: Any) -> list[str] | None:
    """The field names of a dataclass; None for other values, without importing dataclasses."""
    if not hasattr(type(value), "__dataclass_fields__"):
        return None
    from dataclasses import fields

    return [found.name for found in fields(value)]


def _refuse_unfinished(value: Any) -> None:
    """Raise an error for a returned iterator or closure, which would compute something later."""
    if isinstance(value, Iterator) or (type(value) is FunctionType and value.__closure__):
        raise CaptureError(
            f"a captured function cannot return a {type(value).__name__}: what it is going to "
            "compute would not be captured",
            hint="return the tensors, in a list",
        )


def hidden_tensors(value: Any, holder: Any = None) -> Iterator[tuple[Any, TensorCore]]:
    """The tensors in attributes of objects that `flatten` does not enter, with the object."""
    if isinstance(value, TensorCore):
        if holder is not None:
            yield holder, value
        return
    parts: Iterable[Any] = ()
    if isinstance(value, (tuple, list)):
        parts = value
    elif isinstance(value, dict):
        parts = value.values()
    elif (names := _field_names(value)) is not None:
        parts = [getattr(value, name) for name in names]
    elif holder is None and (space := dict_of(value)):
        parts, holder = list(space.values()), value
    for part in parts:
        yield from hidden_tensors(part, holder)


def _constant(value: Any, objects: list[Any]) -> Hashable:
    """A value without tensors as a key: plain values by value, objects by identity."""
    kind = type(value)
    if is_plain(value) or isinstance(value, type):
        return kind, value
    if is_numpy_array(value) or isinstance(value, (Set, bytearray, memoryview)):
        raise CaptureError(
            f"a captured function cannot take a {kind.__name__}: it could change unnoticed",
            hint="pass a Tensor, or something hashable that stays what it is",
        )
    objects.append(value)
    try:
        made = IdentityKey(value)
    except TypeError:  # it has no weak references: the list of objects keeps it alive
        return kind, id(value)
    made.number = id(value)
    return kind, made


def plain_values(value: Any) -> Any:
    """The numbers and strings in a result, which replays return unchanged."""
    if isinstance(value, TensorCore):
        return TENSOR
    if is_plain(value):
        return value
    if isinstance(value, (tuple, list)):
        return tuple([plain_values(item) for item in value])
    if isinstance(value, dict):
        return tuple([(name, plain_values(item)) for name, item in value.items()])
    if (names := _field_names(value)) is not None:
        return tuple([plain_values(getattr(value, name)) for name in names])
    return type(value).__name__


def unflatten(value: Any, tensors: Iterator[Any]) -> Any:
    """The same structure with other tensors, in the order of `flatten`."""
    if isinstance(value, (TensorCore, TensorPlaceholder)):
        return next(tensors)
    if isinstance(value, (tuple, list)):
        parts = [unflatten(item, tensors) for item in value]
        if hasattr(value, "_fields"):  # a named tuple
            return type(value)(*parts)
        return type(value)(parts)
    if isinstance(value, dict):
        return {name: unflatten(item, tensors) for name, item in value.items()}
    if (names := _field_names(value)) is not None:
        made = copy(value)
        for name in names:
            object.__setattr__(made, name, unflatten(getattr(value, name), tensors))
        return made
    return value
