"""function -> Guards: the Python values outside of it that it reads, watched for changes.

A replay runs no Python, so a number in a closure, in a global or in an attribute of one of them
stays what it was when the function was captured. So does one in an attribute of the object whose
method it is, and in a list, tuple or dict. Which of them a function reads stands in its byte code,
and in that of the functions it calls by name.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from functools import partial
from types import CellType, CodeType, FunctionType
from typing import Any, NamedTuple
from weakref import ref

from glassgrad.tensor.contents import PLAIN, Contents, contents

MOST_FUNCTIONS = 64  # whose code is read
GLOBAL, CELL, ATTRIBUTE = ("LOAD_GLOBAL",), ("LOAD_DEREF",), ("LOAD_ATTR", "LOAD_METHOD")
GONE = object()


class Watch(NamedTuple):
    """A value outside: how the function calls it, and how to read it."""

    name: str
    read: Callable[[], Any]


class Guards:
    """What a function reads outside, but for what it changes itself."""

    def __init__(self, function: Callable[..., Any], owner: ref[Any] | None = None) -> None:
        self.watches = list(_watches(function, owner))

    def seen(self) -> Seen:
        return Seen(self, self.watches, [watch.read() for watch in self.watches])


class Seen:
    """The values at one time. The key tells 1, 1.0 and True apart."""

    __slots__ = ("guards", "key", "values", "watches")

    def __init__(self, guards: Guards, watches: list[Watch], values: list[Any]) -> None:
        self.guards, self.watches, self.values = guards, watches, values
        self.key = tuple([(type(v), _keyed(v)) for v in values])

    def are_still(self) -> bool:
        """Whether the values certainly are what they were."""
        for watch, old in zip(self.watches, self.values, strict=True):
            now = watch.read()
            if now is not old and not (type(old) is Contents and now == old):
                return False
        return True

    def without_changed(self) -> Seen:
        """Forget what the function changed itself, as a counter: it does not depend on that."""
        now = [watch.read() for watch in self.watches]
        kept = [n for n, old in enumerate(self.values) if old is now[n] or old == now[n]]
        if len(kept) == len(now):
            return self
        watches = [self.watches[n] for n in kept]
        self.guards.watches = watches
        return Seen(self.guards, watches, [self.values[n] for n in kept])

    def changed_since(self, key: tuple[Any, ...]) -> str:
        """The first value that is not what it was, in words."""
        for watch, old, new in zip(self.watches, key, self.key, strict=False):
            if old != new:
                return f"{watch.name}, which was {_shown(old)} and is {_shown(new)}"
        return "a value that is not what it was"


def _keyed(value: Any) -> Any:
    if type(value) is Contents:
        return value
    return repr(value) if type(value) in PLAIN else None


def _shown(part: tuple[type, Any]) -> str:
    return f"a {part[0].__name__}" if part[1] is None else str(part[1])


def _watches(function: Callable[..., Any], owner: ref[Any] | None) -> Iterator[Watch]:
    """`owner` is the object whose method the function is."""
    seen: set[Any] = set()
    watched: set[tuple[int, str]] = set()
    waiting: list[Any] = [function]
    while waiting and len(seen) < MOST_FUNCTIONS:
        found = _unwrapped(waiting.pop())
        if not isinstance(found, FunctionType) or found in seen:
            continue
        seen.add(found)
        if (found.__module__ or "").startswith("glassgrad."):  # a wrapper: only what it wraps
            waiting.extend(map(_contents, _cells(found).values()))
            continue
        for whose, name, root, attributes in _reads(found, owner):
            value = _read(root, attributes)
            if value is GONE and attributes:  # a method: what matters is its object
                attributes = attributes[:-1]
                name, value = name.rpartition(".")[0], _read(root, attributes)
            is_plain = type(value) in PLAIN
            if not is_plain:
                waiting.append(value)
            if (whose, name) in watched or not (is_plain or _has_numbers(value)):
                continue
            watched.add((whose, name))
            read = partial(_read, root, attributes) if attributes else root
            yield Watch(name, read if is_plain else partial(_read_contents, read))


def _has_numbers(value: Any) -> bool:
    """Whether it is a container of numbers, or an object of ours with options, as optimisers are.

    Other objects are watched by the attributes that the function reads: they may count steps.
    """
    is_ours = type(value).__module__.startswith("glassgrad.")
    return (is_ours or isinstance(value, (list, tuple, dict))) and contents(value) is not None


def _unwrapped(value: Any) -> Any:
    """The function inside of a partial, a bound method or a captured function."""
    for _ in range(8):
        inner = getattr(value, "func", None) or getattr(value, "__func__", None)
        inner = inner or getattr(value, "fxn", None)
        if inner is None:
            break
        value = inner
    return value


def _cells(function: FunctionType) -> dict[str, CellType]:
    return dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing is in it yet
        return GONE


def _reads(
    function: FunctionType, owner: ref[Any] | None
) -> Iterator[tuple[int, str, Callable[[], Any], tuple[str, ...]]]:
    """What a function reads outside of itself: whose it is, its name, and the way to it."""
    cells, names = _cells(function), function.__globals__
    is_method = owner is not None and function.__code__.co_varnames[:1] == ("self",)
    for kind, name, attributes in _chains(function.__code__):
        shown = ".".join((name, *attributes))
        if kind == "global" and name in names:
            yield id(names), shown, partial(names.get, name), attributes
        elif kind == "cell" and name in cells:
            yield id(cells[name]), shown, partial(_contents, cells[name]), attributes
        elif kind == "self" and is_method and owner is not None:
            yield id(owner), shown, owner, attributes
            method = getattr(type(owner()), attributes[0], None) if attributes else None
            if isinstance(method, FunctionType):  # another method of the same object
                yield id(method), shown, partial(_same, method), ()


def _chains(code: CodeType) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """`config.model.size` as (kind, "config", ("model", "size")), of a code and those inside it."""
    chain: list[str] = []
    kind = ""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ATTRIBUTE and chain:
            chain.append(str(instruction.argval))
            continue
        if chain:
            yield kind, chain[0], tuple(chain[1:])
        kind = _kind(instruction)
        chain = [str(instruction.argval)] if kind else []
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _chains(inner)


def _kind(instruction: dis.Instruction) -> str:
    if instruction.opname in GLOBAL:
        return "global"
    if instruction.opname in CELL:
        return "cell"
    return "self" if instruction.argval == "self" else ""


def _same(value: Any) -> Any:
    return value


def _read_contents(read: Callable[[], Any]) -> Any:
    value = read()
    found = contents(value)
    return value if found is None else found


def _read(root: Callable[[], Any], attributes: tuple[str, ...]) -> Any:
    """A value, by way of attributes that are plain data: no property is run."""
    value = root()
    for name in attributes:
        value = getattr(value, "__dict__", {}).get(name, GONE)
    return value
