"""a value -> Contents: the plain numbers and texts inside of it, to see whether they changed."""

from __future__ import annotations

from types import FunctionType, ModuleType
from typing import Any

from glassgrad.tensor.core import Core

PLAIN = frozenset((int, float, bool, str, bytes, type(None)))
NUMBERS = frozenset((int, float, bool))
MOST_ITEMS = 1000  # of a container that are looked at
DEEPEST = 4  # containers in containers
MOST_SHOWN = 8


class Contents(tuple[Any, ...]):
    """Comparable: equal where all numbers are."""

    __slots__ = ()

    def __str__(self) -> str:
        shown = list(_texts(self))
        more = ", …" if len(shown) > MOST_SHOWN else ""
        return f"({', '.join(shown[:MOST_SHOWN])}{more})"


def contents(value: Any) -> Contents | None:
    """What a list, tuple or dict holds, or the attributes of an object; None without any numbers.

    Tensors, and objects inside of containers, are not looked into.
    """
    if isinstance(value, (list, tuple, dict)):
        found = _inside(value, DEEPEST)
    elif isinstance(value, (Core, type, FunctionType, ModuleType)):
        return None
    else:
        own = getattr(value, "__dict__", None) or {}
        found = Contents((n, _plain(v)) for n, v in own.items() if type(v) in PLAIN)
    return found if _has_number(found) else None


def _inside(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind in PLAIN:
        return _plain(value)
    if not isinstance(value, (list, tuple, dict)) or not depth:
        return None
    if len(value) > MOST_ITEMS:
        return kind, len(value)
    if isinstance(value, dict):
        pairs = [(str(name), _inside(item, depth - 1)) for name, item in value.items()]
        return Contents((kind, *pairs))
    return Contents((kind, *[_inside(item, depth - 1) for item in value]))


def _plain(value: Any) -> tuple[type, str]:
    """1, 1.0 and True are equal, but are not the same constant."""
    return type(value), repr(value)


def _has_number(found: Any) -> bool:
    if not isinstance(found, tuple):
        return False
    return (len(found) == 2 and found[0] in NUMBERS) or any(map(_has_number, found))


def _texts(found: Any) -> Any:
    """The numbers as they are written."""
    if isinstance(found, tuple) and len(found) == 2 and found[0] in PLAIN:
        yield found[1]
    elif isinstance(found, tuple):
        for part in found:
            yield from _texts(part)
