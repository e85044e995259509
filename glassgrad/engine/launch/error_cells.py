"""Error cells of a launch -> an IndexError that names the index, its axis and the user's line.

Each CHECK of a kernel has a 64-bit cell: 0, or an index outside of its axis. 0 is never one, since
indexing an axis without elements is refused.
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
class ErrorCells:
    """The buffer in which a launch reports out-of-range indices: one element for each of its
    CHECKs.

    `is_known`: an earlier launch has the same CHECKs, so these find nothing new.
    """

    buffer: int
    launch: int
    checks: tuple[Check, ...]
    is_known: bool = False


class OutOfRangeError(AxisError):
    """A computed index is out of range; `check` is the CHECK that found it."""

    def __init__(self, check: Check, message: str, hint: str, origin: Origin | None) -> None:
        super().__init__(message, hint, origin)
        self.check = check


class BadIndex(Exception):
    """A CHECK, given by its launch and its number there, met a value outside of its axis."""

    def __init__(self, cells: ErrorCells, number: int, value: int) -> None:
        super().__init__(cells.launch, number, value)
        self.checks = cells.checks
        self.launch = cells.launch
        self.number = number
        self.value = value

    def to_user_error(self, checks: tuple[Check, ...]) -> AxisError:
        """The error in terms of the user's code; `checks` are those of the launch."""
        size, axis, can_wrap = checks[self.number].arg
        least = -size if can_wrap else 0
        value = self.value + least if self.value < 0 else self.value
        return OutOfRangeError(
            checks[self.number],
            f"index {value} is out of range for axis {axis} of size {size}",
            hint=f"use {least} to {size - 1}",
            origin=checks[self.number].origin,
        )


def raise_bad_index(all_cells: Iterable[tuple[ErrorCells, Words]]) -> None:
    """Raise BadIndex for the first out-of-range index; clears all cells."""
    bad: BadIndex | None = None
    for cells, words in all_cells:
        if any(words):
            number, value = next((number, word) for number, word in enumerate(words) if word)
            ctypes.memset(words, 0, ctypes.sizeof(words))
            bad = bad or BadIndex(cells, number, value)
    if bad is not None:
        raise bad


def cell_values(view: View) -> Words:
    """The cells as a ctypes array over their memory."""
    words = (ctypes.c_int64 * view.shape[0]).from_address(view.address)
    words.owner = view  # type: ignore[attr-defined]
    return words
