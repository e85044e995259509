"""Where a guard reads values: attributes, entries of a namespace, items of a container.

Each source can read its values, name them for a message, and write the expressions that compare
them with their snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import is_
from types import FunctionType
from typing import Any, NamedTuple, Protocol

from glassgrad.tensor.jit.guards.kinds import is_equal, is_plain


class Source(Protocol):
    """Some values that are read in one place."""

    def values(self) -> list[Any]: ...

    def path(self, number: int) -> str:
        """What the user calls a value."""

    def terms(self, code: GuardCode, saved: list[Any]) -> Iterator[str]:
        """Expressions, true while the values are those that were saved."""


class GuardCode:
    """A function that compares: expressions over constants, which `name` gives names."""

    def __init__(self) -> None:
        self.constants: dict[str, Any] = {"all_same": all_same, "is_equal": is_equal_plain}

    def name(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def is_same(self, expression: str, value: Any) -> str:
        """Plain values may be other objects that are equal."""
        saved = self.name(value)
        same = f"{expression} is {saved}"
        return f"({same} or is_equal({expression}, {saved}))" if is_plain(value) else same

    def function(self, terms: Iterable[str]) -> Callable[[], bool]:
        text = "lambda: " + (" and ".join(terms) or "True")
        made = eval(compile(text, "<guards>", "eval"), self.constants)
        assert isinstance(made, FunctionType)
        return made


def is_equal_plain(new: Any, old: Any) -> bool:
    return is_plain(new) and is_equal(old, new)


def all_same(now: Iterable[Any], saved: Sequence[Any]) -> bool:
    """True if items are those that were saved, or plain values equal to them."""
    found = list(now)
    if len(found) != len(saved):
        return False
    if all(map(is_, found, saved)):
        return True
    pairs = zip(found, saved, strict=True)
    return all(new is old or (is_plain(old) and is_equal_plain(new, old)) for new, old in pairs)


# ---------------------------------------------------------------------- the sources


class Attributes(NamedTuple):
    """Attributes that reading runs no code of the user for."""

    owner: Any
    names: Sequence[str]
    prefix: str

    def values(self) -> list[Any]:
        return [object.__getattribute__(self.owner, name) for name in self.names]

    def path(self, number: int) -> str:
        return f"{self.prefix}.{self.names[number]}" if self.prefix else self.names[number]

    def terms(self, code: GuardCode, saved: list[Any]) -> Iterator[str]:
        owner = code.name(self.owner)
        for name, value in zip(self.names, saved, strict=True):
            yield code.is_same(f"{owner}.{name}", value)


class Entries(NamedTuple):
    """Entries of a namespace or dict, by their keys."""

    owner: Mapping[Any, Any]
    keys: Sequence[Any]
    prefix: str  # before a key, as "config."

    def values(self) -> list[Any]:
        return [self.owner[key] for key in self.keys]

    def path(self, number: int) -> str:
        return f"{self.prefix}{self.keys[number]}"

    def terms(self, code: GuardCode, saved: list[Any]) -> Iterator[str]:
        owner = code.name(self.owner)
        for key, value in zip(self.keys, saved, strict=True):
            yield code.is_same(f"{owner}[{key!r}]", value)


class Items(NamedTuple):
    """Everything that a function reads of an object, compared as a whole."""

    owner: Any
    read: Callable[[Any], Iterable[Any]]
    name: Callable[[int], str]

    def values(self) -> list[Any]:
        return list(self.read(self.owner))

    def path(self, number: int) -> str:
        return self.name(number)

    def terms(self, code: GuardCode, saved: list[Any]) -> Iterator[str]:
        yield f"all_same({code.name(self.read)}({code.name(self.owner)}), {code.name(saved)})"


class Length(NamedTuple):
    """How many entries a namespace has: a new one may hide what a class has."""

    owner: Any
    prefix: str

    def values(self) -> list[Any]:
        return [len(self.owner)]

    def path(self, number: int) -> str:
        return f"the number of attributes of {self.prefix or 'an object'}"

    def terms(self, code: GuardCode, saved: list[Any]) -> Iterator[str]:
        yield f"len({code.name(self.owner)}) == {saved[0]}"


class ClassOf(NamedTuple):
    """The class of an object."""

    owner: Any
    prefix: str

    def values(self) -> list[Any]:
        return [type(self.owner)]

    def path(self, number: int) -> str:
        return f"the class of {self.prefix}"

    def terms(self, code: GuardCode, saved: list[Any]) -> Iterator[str]:
        yield f"type({code.name(self.owner)}) is {code.name(saved[0])}"


class Contents(NamedTuple):
    """The elements of a mutable array."""

    owner: Any
    prefix: str

    def values(self) -> list[Any]:
        return [contents_of(self.owner)]

    def path(self, number: int) -> str:
        return f"the contents of {self.prefix}"

    def terms(self, code: GuardCode, saved: list[Any]) -> Iterator[str]:
        code.constants["contents_of"] = contents_of
        yield f"contents_of({code.name(self.owner)}) == {code.name(saved[0])}"


def contents_of(array: Any) -> tuple[Any, ...]:
    """What an array holds: of NumPy, of anything that NumPy reads, of an exporter of memory."""
    if hasattr(type(array), "__array__"):
        array = array.__array__()
        return array.dtype.str, array.shape, array.tobytes()
    view = memoryview(array)
    return view.format, view.shape, view.tobytes()
