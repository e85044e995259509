"""cells that a launch wrote -> an IndexError that says which index was wrong, and where it was.

Every CHECK of a kernel has a cell of 64 bits: 0, or an index that lies outside of its axis (which 0
never does, since axes without elements are refused when they are indexed).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

from glassgrad.base.errors import AxisError
from glassgrad.base.fast_dataclasses import frozen
from glassgrad.base.origin import Origin
from glassgrad.ir.stages import Check
from glassgrad.memory.view import View

Words = ctypes.Array[ctypes.c_int64]


@frozen
class Cells:
    """The place where a launch writes bad indices: one element for each of its CHECKs.

    `is_known`: an earlier launch has the same CHECKs, so these find nothing more.
    """

    place: int
    launch: int
    checks: tuple[Check, ...]
    is_known: bool = False


class OutOfRangeError(AxisError):
    """An index that was computed is out of range; it knows which CHECK found it."""

    def __init__(self, check: Check, message: str, hint: str, origin: Origin | None) -> None:
        super().__init__(message, hint, origin)
        self.check = check


class BadIndex(Exception):
    """A CHECK, given by its launch and its number there, met a value outside of its axis."""

    def __init__(self, cells: Cells, number: int, value: int) -> None:
        super().__init__(cells.launch, number, value)
        self.checks = cells.checks
        self.launch = cells.launch
        self.number = number
        self.value = value

    def explained(self, checks: tuple[Check, ...]) -> AxisError:
        """What the user wrote, and what is wrong with it; `checks` are those of the launch."""
        size, axis, can_wrap = checks[self.number].arg
        least = -size if can_wrap else 0
        value = self.value + least if self.value < 0 else self.value
        return OutOfRangeError(
            checks[self.number],
            f"index {value} is out of range for axis {axis} of size {size}",
            hint=f"use {least} to {size - 1}",
            origin=checks[self.number].origin,
        )


def look_for_bad_index(all_cells: Iterable[tuple[Cells, Words]]) -> None:
    """Raise BadIndex for the first that launches found; all cells are clean again."""
    bad: BadIndex | None = None
    for cells, words in all_cells:
        if any(words):
            number, value = next((number, word) for number, word in enumerate(words) if word)
            ctypes.memset(words, 0, ctypes.sizeof(words))
            bad = bad or BadIndex(cells, number, value)
    if bad is not None:
        raise bad


def words_of(view: View) -> Words:
    """Cells as ints."""
    words = (ctypes.c_int64 * view.shape[0]).from_address(view.address)
    words.owner = view  # type: ignore[attr-defined]
    return words
