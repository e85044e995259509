"""class -> record that does not change: what `dataclass(frozen=True)` makes of it, made sooner.

`dataclass` writes and compiles six methods for every class, half of the time that importing our
modules took. Here only `__init__` is written; the other methods are the same for all classes.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from inspect import get_annotations
from operator import attrgetter
from typing import Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass
class _Template:
    """Whose field is copied for every other one: `replace` and `fields` must know them."""

    value: Any


(TEMPLATE,) = fields(_Template)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """A class whose instances are told apart by their fields, and keep them.

    >>> @frozen
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1, 0)
    (Point(x=1, y=0), True)
    """
    own = {name: _field(cls, name, kind) for name, kind in get_annotations(cls).items()}
    found: dict[str, Field[Any]] = {**getattr(cls, "__dataclass_fields__", {}), **own}
    methods: dict[str, Any] = {
        "__dataclass_fields__": found,
        "__match_args__": tuple(found),
        "__init__": _init(cls, found),
        "_values": property(attrgetter(*found)) if found else (),
        **SHARED,
    }
    for name, method in methods.items():
        if name not in cls.__dict__:
            setattr(cls, name, method)
    return cls


def _field(cls: type, name: str, kind: Any) -> Field[Any]:
    default = cls.__dict__.get(name, MISSING)
    made = default if isinstance(default, Field) else copy(TEMPLATE)
    if made is default:
        made._field_type = TEMPLATE._field_type  # type: ignore[attr-defined]
        delattr(cls, name)  # the factory makes one for each instance
    else:
        made.default = default
    made.name, made.type = name, kind
    return made


def _init(cls: type, found: dict[str, Field[Any]]) -> Callable[..., None]:
    """The one method that is written: who gives too few values is told which."""
    names: dict[str, Any] = {"put": object.__setattr__}
    heads, lines = [], []
    for name, made in found.items():
        heads.append(name)
        value = name
        if made.default is not MISSING:
            heads[-1] += f"=default_{name}"
            names[f"default_{name}"] = made.default
        elif made.default_factory is not MISSING:
            heads[-1] += "=put"  # which nobody gives
            names[f"make_{name}"] = made.default_factory
            value = f"make_{name}() if {name} is put else {name}"
        lines.append(f"    put(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("    self.__post_init__()")
    text = "\n".join([f"def __init__(self, {', '.join(heads)}):", *lines, "    return None"])
    exec(text, names)
    made_init: Callable[..., None] = names["__init__"]
    made_init.__qualname__ = f"{cls.__qualname__}.__init__"
    return made_init


# ---------------------------------------------------------------------- methods of all of them


def _repr(self: Any) -> str:
    values = [f"{name}={getattr(self, name)!r}" for name in self.__dataclass_fields__]
    return f"{type(self).__qualname__}({', '.join(values)})"


def _eq(self: Any, other: Any) -> Any:
    return self._values == other._values if type(self) is type(other) else NotImplemented


def _hash(self: Any) -> int:
    return hash(self._values)


def _refuse_set(self: Any, name: str, value: Any) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


SHARED = {
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
    "__setattr__": _refuse_set,
    "__delattr__": _refuse_delete,
}
