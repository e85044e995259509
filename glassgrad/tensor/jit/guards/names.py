"""Code objects -> the names that they may look up, and names that they only update."""

from __future__ import annotations

import dis
from collections.abc import Iterable, Iterator
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

REFLECTION = frozenset(("vars", "__dict__", "attrgetter", "asdict", "astuple", "__getattribute__"))
MUTATORS = frozenset(
    ("add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "insert", "remove")
)
MAX_STEPS_TO_STORE = 8  # bytecode instructions between load and store of x in `x += value`


class Names(NamedTuple):
    """The identifiers in a code object and in the code nested in it.

    `loaded` are names of globals and attributes, `texts` are string constants, which getattr() and
    match statements use as names. With `reads_all`, attribute names are computed at run time.
    """

    loaded: frozenset[str]
    texts: frozenset[str]
    reads_all: bool
    modules: frozenset[str]  # imported inside of the code


@lru_cache(maxsize=4096)
def names_in(code: CodeType) -> Names:
    loaded: set[str] = set()
    texts: set[str] = set()
    modules: set[str] = set()
    reads_all = False
    for one in nested(code):
        if any(step.opname == "IMPORT_NAME" for step in dis.get_instructions(one)):
            modules.update(one.co_names)
        loaded.update(one.co_names)
        texts.update(_identifiers(one.co_consts))
        reads_all = reads_all or not REFLECTION.isdisjoint(one.co_names) or _computes_names(one)
    return Names(frozenset(loaded), frozenset(texts), reads_all, frozenset(modules))


def nested(code: CodeType) -> Iterator[CodeType]:
    """A code object and the functions, lambdas and comprehensions inside of it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested(constant)


def _identifiers(constants: Iterable[Any]) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str):
            yield from (part for part in constant.split(".") if part.isidentifier())
        elif isinstance(constant, (tuple, frozenset)):
            yield from _identifiers(constant)


def _computes_names(code: CodeType) -> bool:
    """True if getattr() is called with anything but a constant name."""
    if "getattr" not in code.co_names and "globals" not in code.co_names:
        return False
    steps = list(dis.get_instructions(code))
    for number, step in enumerate(steps):
        if step.argval == "getattr" and step.opname.startswith("LOAD"):
            following = steps[number + 1 : number + 1 + MAX_STEPS_TO_STORE]
            if not any(isinstance(one.argval, str) and _is_constant(one) for one in following):
                return True
    return False


def _is_constant(step: dis.Instruction) -> bool:
    return step.opname in ("LOAD_CONST", "RETURN_CONST")


def line_of(code: CodeType, name: str) -> int:
    """The first line that looks a name up."""
    for one in nested(code):
        for step in dis.get_instructions(one):
            if step.argval == name and step.positions is not None and step.positions.lineno:
                return step.positions.lineno
    return code.co_firstlineno


# ---------------------------------------------------------------------- counters


def is_only_updated(codes: Iterable[CodeType], name: str) -> bool:
    """True if every use of a name only updates it, as `calls += 1` and `losses.append(x)` do: then
    nothing is computed from it.
    """
    found = [_uses(one, name) for code in codes for one in nested(code)]
    return all(found)


def _uses(code: CodeType, name: str) -> bool:
    steps = list(dis.get_instructions(code))
    loads = [number for number, step in enumerate(steps) if _loads(step, name)]
    return all(_is_update(steps, number, name) for number in loads)


def _loads(step: dis.Instruction, name: str) -> bool:
    if not step.opname.startswith("LOAD") or _is_constant(step):
        return False
    return step.argval == name or (isinstance(step.argval, tuple) and name in step.argval)


def _is_update(steps: list[dis.Instruction], number: int, name: str) -> bool:
    after = steps[number + 1 : number + 1 + MAX_STEPS_TO_STORE]
    if after and after[0].argval in MUTATORS:
        return True
    line = _line(steps[number])
    if any(one.opname in ("STORE_SUBSCR", "STORE_SLICE") and _line(one) == line for one in after):
        return True
    in_place = [n for n, one in enumerate(after) if _is_in_place(one)]
    return bool(in_place) and any(
        one.opname.startswith("STORE") and one.argval == name for one in after[in_place[0] :]
    )


def _is_in_place(step: dis.Instruction) -> bool:
    return step.opname == "BINARY_OP" and step.argrepr.endswith("=")


def _line(step: dis.Instruction) -> int | None:
    return step.positions.lineno if step.positions is not None else None
