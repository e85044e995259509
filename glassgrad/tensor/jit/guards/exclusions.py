"""Records of what is not guarded: constants, and values that `impure` or `reach` refuse."""

from __future__ import annotations

from linecache import getline
from types import CodeType
from typing import Any, NamedTuple

from glassgrad.base.origin import Origin


class UnguardableValue(NamedTuple):
    """A value that no snapshot can hold."""

    what: str
    path: str
    origin: Origin | None


class Exclusions(NamedTuple):
    """What is not followed: values and paths that the user declared constant, and `updated` paths,
    which the function only updates.
    """

    values: tuple[Any, ...] = ()
    paths: frozenset[str] = frozenset()
    updated: frozenset[str] = frozenset()

    def has(self, value: Any, path: str) -> bool:
        if path in self.updated or path in self.paths:
            return True
        return any(one is value for one in self.values)


def origin_of(code: CodeType, line: int) -> Origin:
    """The user's line of code that uses a value."""
    return Origin(code.co_filename, line, getline(code.co_filename, line).strip())
