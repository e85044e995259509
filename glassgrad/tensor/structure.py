"""nested values <-> their tensors: what functions take and return, in containers of any depth."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from copy import copy
from typing import Any

from glassgrad.base.errors import CaptureError
from glassgrad.ir.symbolic import SymbolicInt
from glassgrad.tensor.contents import PLAIN, contents
from glassgrad.tensor.core import Core

TENSOR = "a tensor"  # stands for one in a key


class Hole:
    """Stands for a tensor in a structure that is to be rebuilt."""


def spread(value: Any, found: list[Any], is_key: bool = True) -> Hashable:
    """Collect the tensors and sizes inside of a value; all that is constant becomes the key.

    >>> found = []
    >>> spread((Tensor([1]), {"n": 2}), found), len(found)
    (('tuple', 'a tensor', ('dict', 'n', (<class 'int'>, '2'))), 1)
    """
    if isinstance(value, Core):
        found.append(value)
        return TENSOR
    kind = type(value)
    if kind is SymbolicInt:
        if not is_key:
            _refuse_size(value)
        found.append(value.size)
        return TENSOR, value.size.uop
    if kind in PLAIN:  # 1, 1.0 and True are equal, but are not the same constant
        return kind, repr(value)
    if isinstance(value, (tuple, list)):
        return kind.__name__, *[spread(item, found, is_key) for item in value]
    if isinstance(value, dict):
        inside = [part for k, v in value.items() for part in (k, spread(v, found, is_key))]
        return "dict", *inside
    if (names := _field_names(value)) is not None:
        return kind, *[spread(getattr(value, name), found, is_key) for name in names]
    if is_key:
        return _constant(value)
    _refuse_unfinished(value)
    return None


def _refuse_size(size: SymbolicInt) -> None:
    """What a function returns must not be a size that the next call may change."""
    raise CaptureError(
        f"a captured function cannot return {size}: replays would not change it",
        hint=f"return Tensor({size})",
    )


def _field_names(value: Any) -> list[str] | None:
    """The fields of a dataclass; None if it is none. Who has none does not import the module."""
    if not hasattr(type(value), "__dataclass_fields__"):
        return None
    from dataclasses import fields

    return [found.name for found in fields(value)]


def _refuse_unfinished(value: Any) -> None:
    """What a function returns must not be computed when somebody asks for it."""
    if isinstance(value, Iterator) or getattr(value, "__closure__", None):
        raise CaptureError(
            f"a captured function cannot return a {type(value).__name__}: what it is going to "
            "compute would not be captured",
            hint="return the tensors, in a list",
        )


def hidden_tensors(value: Any, holder: Any = None) -> Iterator[tuple[Any, Core]]:
    """The tensors in attributes of objects that `spread` does not look into, with the object."""
    if isinstance(value, Core):
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
    elif holder is None and hasattr(value, "__dict__"):
        parts, holder = list(vars(value).values()), value
    for part in parts:
        yield from hidden_tensors(part, holder)


def _constant(value: Any) -> Hashable:
    try:
        hash(value)
    except TypeError:
        raise CaptureError(
            f"a captured function cannot take a {type(value).__name__}: it could change unnoticed",
            hint="pass a Tensor, or something hashable that stays what it is",
        ) from None
    inside = contents(value)  # what the object says of itself may not be all that it is
    return (type(value), value) if inside is None else (type(value), value, inside)


def rebuilt(value: Any, tensors: Iterator[Any]) -> Any:
    """The same structure with other tensors, which come in the order of `spread`."""
    if isinstance(value, (Core, Hole)):
        return next(tensors)
    if isinstance(value, (tuple, list)):
        parts = [rebuilt(item, tensors) for item in value]
        if hasattr(value, "_fields"):  # a named tuple
            return type(value)(*parts)
        return type(value)(parts)
    if isinstance(value, dict):
        return {name: rebuilt(item, tensors) for name, item in value.items()}
    if (names := _field_names(value)) is not None:
        made = copy(value)
        for name in names:
            object.__setattr__(made, name, rebuilt(getattr(value, name), tensors))
        return made
    return value
