"""Where a guard reads values: attributes, entries of a namespace, items of a container.

A source reads its values, names them for messages, and generates the expressions that compare them
with the snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import is_
from types import CellType, FunctionType
from typing import Any, NamedTuple, Protocol

from glassgrad.tensor.jit.guards.kinds import is_equal, is_plain

MAX_INLINED_ELEMENTS = 32  # of a list; longer ones are compared by one call


class Source(Protocol):
    """Some values that are read from one place."""

    def values(self) -> list[Any]: ...

    def path(self, number: int) -> str:
        """The name of a value in messages."""

    def terms(self, code: GuardCode, saved: list[Any]) -> Iterator[str]:
        """Expressions that are true while the values equal the saved ones."""


class GuardCode:
    """The generated comparison: expressions over named constants."""

    def __init__(self) -> None:
        self.constants: dict[str, Any] = {"all_same": all_same, "is_equal": is_equal_plain}

    def name(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def is_same(self, expression: str, value: Any) -> str:
        """An identity test; plain values may also be equal objects."""
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
    """True if the items are the saved ones, or plain values equal to them."""
    found = list(now)
    if len(found) != len(saved):
        return False
    if all(map(is_, found, saved)):
        return True
    pairs = zip(found, saved, strict=True)
    return all(new is old or (is_plain(old) and is_equal_plain(new, old)) for new, old in pairs)


# ---------------------------------------------------------------------- the sources


class Attributes(NamedTuple):
    """Attributes that can be read without running user code."""

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


class Cell(NamedTuple):
    """The variable that a closure shares."""

    owner: CellType
    name: str

    def values(self) -> list[Any]:
        return [self.owner.cell_contents]

    def path(self, number: int) -> str:
        return self.name

    def terms(self, code: GuardCode, saved: list[Any]) -> Iterator[str]:
        yield code.is_same(f"{code.name(self.owner)}.cell_contents", saved[0])


class Elements(NamedTuple):
    """The elements of a list, tuple, set or deque."""

    owner: Collection[Any]
    prefix: str

    def values(self) -> list[Any]:
        return list(self.owner)

    def path(self, number: int) -> str:
        return f"{self.prefix}[{number}]"

    def terms(self, code: GuardCode, saved: list[Any]) -> Iterator[str]:
        if type(self.owner) in (tuple, frozenset):  # immutable
            return
        owner = code.name(self.owner)
        if type(self.owner) is list and len(saved) <= MAX_INLINED_ELEMENTS:
            yield f"len({owner}) == {len(saved)}"
            for number, value in enumerate(saved):
                yield code.is_same(f"{owner}[{number}]", value)
        else:
            yield f"all_same({owner}, {code.name(saved)})"


class Items(NamedTuple):
    """All that a function reads from an object, compared as a whole."""

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
    """The number of entries of a namespace: a new entry may hide a class attribute."""

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
    """The contents of an array: of NumPy, of anything with __array__, or of a buffer exporter."""
    if hasattr(type(array), "__array__"):
        array = array.__array__()
        return array.dtype.str, array.shape, array.tobytes()
    view = memoryview(array)
    return view.format, view.shape, view.tobytes()
