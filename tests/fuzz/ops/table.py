"""Op: a row of the table of operations: its text, its reference in NumPy, how inputs are chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fuzz.dtypes import bits, is_float, promote
from fuzz.pool import Pool
from fuzz.programs import Statement

Choice = tuple[list[str], dict[str, Any]]
Names = tuple[str, ...]


@dataclass(frozen=True)
class Op:
    """One operation.

    `text` has the inputs as {0}, {1}, … and constants by name. `reference` computes the same with
    NumPy; for views it is also applied to arrays of indices. `exactness` says when results are
    bitwise reproducible: "move" (always: nothing is computed), "exact" (if the numbers have few
    bits), or "function" (never).
    """

    name: str
    text: str
    reference: Callable[..., Any]
    choose: Callable[[Pool], Choice]
    exactness: str = "function"
    result: Callable[[Names, dict[str, Any]], str | Names] = lambda names, args: names[0]
    effect: str = "value"  # or "view", "write", "none"
    weight: float = 1.0
    promotes: bool = False  # inputs are cast to their common dtype
    is_smooth: bool = True  # gradients flow through it
    floor: float = 0.0  # size of intermediate results, whose rounding errors reach the result

    def text_of(self, one: Statement) -> str:
        args = {name: show(value) for name, value in one.args.items()}
        text = self.text.format(*one.inputs, **args)
        return text if self.effect in ("write", "none") else f"{', '.join(one.outs)} = {text}"

    def dtypes_of(self, names: Names, args: dict[str, Any]) -> Names:
        found = self.result(names, args)
        return (found,) if isinstance(found, str) else tuple(found)


def show(value: Any) -> str:
    """A constant as Python text; an Index as it stands in brackets."""
    if isinstance(value, Index):
        return ", ".join(_show_index(one) for one in value.parts)
    return value if isinstance(value, Text) else repr(value)


class Text(str):
    """A piece of program text, such as an operator."""

    __slots__ = ()


@dataclass(frozen=True)
class Index:
    """A basic index: ints, slices, None and Ellipsis."""

    parts: tuple[Any, ...]

    @property
    def key(self) -> tuple[Any, ...]:
        return self.parts


def _show_index(one: Any) -> str:
    if not isinstance(one, slice):
        return "..." if one is Ellipsis else repr(one)
    start, stop = ("" if x is None else str(x) for x in (one.start, one.stop))
    return f"{start}:{stop}" if one.step is None else f"{start}:{stop}:{one.step}"


# ---------------------------------------------------------------------- dtypes of results


def same(names: Names, args: dict[str, Any]) -> str:
    return names[0]


def promoted(names: Names, args: dict[str, Any]) -> str:
    found = names[0]
    for name in names[1:]:
        found = promote(found, name)
    return found


def promoted_float(names: Names, args: dict[str, Any]) -> str:
    found = promoted(names, args)
    return found if is_float(found) else "float32"


def floating(names: Names, args: dict[str, Any]) -> str:
    return names[0] if is_float(names[0]) else "float32"


def boolean(names: Names, args: dict[str, Any]) -> str:
    return "bool"


def index(names: Names, args: dict[str, Any]) -> str:
    return "int32"


def summed(names: Names, args: dict[str, Any]) -> str:
    if names[0] == "bool":
        return "int32"
    if is_float(names[0]) or bits(names[0]) >= 32:
        return names[0]
    return "uint32" if names[0].startswith("u") else "int32"


def second(names: Names, args: dict[str, Any]) -> str:
    return names[1]


def by_name(names: Names, args: dict[str, Any]) -> str:
    return str(args["dtype"])


def with_index(names: Names, args: dict[str, Any]) -> Names:
    return (names[0], "int32")


def twice(names: Names, args: dict[str, Any]) -> Names:
    return (names[0], names[0])
