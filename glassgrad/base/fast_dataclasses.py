"""Class -> dataclass-like class, without the start-up cost of `dataclasses`.

`dataclass` generates and compiles six methods per class, and importing it takes as long as
importing twenty of our modules. Here only `__init__` is generated, at the first instantiation; the
other methods are shared by all classes. The interface is that of dataclasses.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NoReturn, TypeVar, dataclass_transform

from glassgrad.base.origin import GENERATED

T = TypeVar("T")
MISSING: Any = object()


class Field:
    """A field of a class: default, and how it takes part in comparison and repr."""

    __slots__ = ("compare", "default", "default_factory", "kind", "name", "repr")

    def __init__(
        self, default: Any, default_factory: Callable[[], Any] | None, compare: bool, repr: bool
    ) -> None:
        self.name = ""
        self.kind: Any = None
        self.default = default
        self.default_factory = default_factory
        self.compare = compare
        self.repr = repr


def field(
    *,
    default: Any = MISSING,
    default_factory: Callable[[], Any] | None = None,
    compare: bool = True,
    repr: bool = True,
) -> Any:
    """Options of a field; a `default_factory` is called for each instance."""
    return Field(default, default_factory, compare, repr)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Immutable instances, compared by their fields.

    >>> @frozen
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1, 0)
    (Point(x=1, y=0), True)
    """
    return _add_methods(cls, FROZEN | EQUAL)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def unique(cls: type[T]) -> type[T]:
    """Immutable instances, compared by identity."""
    return _add_methods(cls, FROZEN)


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def mutable(cls: type[T]) -> type[T]:
    """Mutable instances, compared by identity."""
    return _add_methods(cls, {})


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def slotted(cls: type[T]) -> type[T]:
    """Mutable instances with slots, for classes with many instances.

    Slots cannot be added to an existing class, so a new class replaces it.
    """
    names = _names(cls)
    defaults = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
    without = {"__dict__", "__weakref__", *names}
    body = {name: value for name, value in cls.__dict__.items() if name not in without}
    body["__slots__"] = (*names, "__weakref__")
    kind: Any = type(cls)
    return _add_methods(kind(cls.__name__, cls.__bases__, body), {}, defaults)


def replace(record: T, **changes: Any) -> T:
    """A copy with some fields changed."""
    kind: Any = type(record)
    for name in kind.__match_args__:
        if name not in changes:
            changes[name] = getattr(record, name)
    changed: T = kind(**changes)
    return changed


# ---------------------------------------------------------------------- adding methods to a class


def _add_methods(
    cls: type[T], methods: dict[str, Any], defaults: dict[str, Any] | None = None
) -> type[T]:
    given: Any = cls.__dict__ if defaults is None else defaults
    found: dict[str, Field] = dict(getattr(cls, "__fields__", {}))
    for name in _names(cls):
        value = given.get(name, MISSING)
        found[name] = option = value if isinstance(value, Field) else field(default=value)
        option.name, option.kind = name, cls.__annotations__[name]
        if option is value and defaults is None:
            delattr(cls, name)
    compared = [name for name, one in found.items() if one.compare]
    own = {
        "__fields__": found,
        "__dataclass_fields__": DATACLASS_FIELDS,
        "__match_args__": tuple(found),
        "__init__": _lazy_init(cls, found),
        "__repr__": _repr,
        "_values": property(attrgetter(*compared)) if compared else (),
        **methods,
    }
    for name, method in own.items():
        if name not in cls.__dict__:
            setattr(cls, name, method)
    return cls


def _names(cls: type) -> list[str]:
    kinds = cls.__annotations__
    return [name for name in kinds if not str(kinds[name]).startswith(("ClassVar", "typing.Class"))]


def _lazy_init(cls: type, found: dict[str, Field]) -> Callable[..., None]:
    """Generates the real `__init__` at the first call: most processes instantiate few classes."""

    def __init__(self: Any, *values: Any, **named: Any) -> None:  # noqa: N807
        init = _init(cls, found)
        setattr(cls, "__init__", init)  # noqa: B010  mypy allows no other way
        init(self, *values, **named)

    return __init__


def _init(cls: type, found: dict[str, Field]) -> Callable[..., None]:
    """The generated `__init__`, whose signature names missing arguments."""
    is_frozen = "__setattr__" in cls.__dict__
    names: dict[str, Any] = {"put": object.__setattr__}
    heads, lines = [], []
    for name, one in found.items():
        heads.append(name)
        value = name
        if one.default_factory is not None:
            heads[-1] += "=put"  # a default that no caller passes
            names[f"make_{name}"] = one.default_factory
            value = f"make_{name}() if {name} is put else {name}"
        elif one.default is not MISSING:
            heads[-1] += f"=default_{name}"
            names[f"default_{name}"] = one.default
        lines.append(
            f"    put(self, {name!r}, {value})" if is_frozen else f"    self.{name} = {value}"
        )
    if hasattr(cls, "__post_init__"):
        lines.append("    self.__post_init__()")
    text = "\n".join([f"def __init__(self, {', '.join(heads)}):", *lines, "    return None"])
    exec(compile(text, f"{GENERATED} {cls.__qualname__}>", "exec"), names)
    init: Callable[..., None] = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


class _DataclassFields:
    """`__dataclass_fields__` for the functions of `dataclasses`: `fields`, `replace`, `asdict`."""

    def __get__(self, record: object, cls: Any) -> dict[str, Any]:
        import dataclasses

        rows = []
        for one in cls.__fields__.values():
            given: dict[str, Any] = {"compare": one.compare, "repr": one.repr}
            if one.default_factory is not None:
                given["default_factory"] = one.default_factory
            elif one.default is not MISSING:
                given["default"] = one.default
            rows.append((one.name, one.kind, dataclasses.field(**given)))
        stub: Any = dataclasses.make_dataclass(cls.__name__, rows)
        found: dict[str, Any] = stub.__dataclass_fields__
        return found


DATACLASS_FIELDS = _DataclassFields()


# ---------------------------------------------------------------------- shared methods


def _repr(self: Any) -> str:
    shown = [name for name, one in self.__fields__.items() if one.repr]
    values = [f"{name}={getattr(self, name)!r}" for name in shown]
    return f"{type(self).__qualname__}({', '.join(values)})"


def _eq(self: Any, other: Any) -> Any:
    return self._values == other._values if type(self) is type(other) else NotImplemented


def _hash(self: Any) -> int:
    return hash(self._values)


def _refuse_set(self: Any, name: str, value: Any) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: Any, name: str) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


FROZEN: dict[str, Any] = {"__setattr__": _refuse_set, "__delattr__": _refuse_delete}
EQUAL: dict[str, Any] = {"__eq__": _eq, "__hash__": _hash}
