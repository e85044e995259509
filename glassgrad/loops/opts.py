"""Loop moves as data: an Opt is a move, an axis by its number, and an amount."""

from __future__ import annotations

from enum import Enum
from typing import Any

from glassgrad.base.fast_dataclasses import frozen


class OptOps(Enum):
    """The moves; loops/moves/table.py says what each does."""

    UPCAST = "several output elements in registers at once"
    UNROLL = "several steps of a reduction at once"
    DOT = "several steps of a sum of narrow products in one instruction"
    LANES = "registers as the lanes of vectors"
    TILE = "an axis as blocks, and elements of a block"
    JOIN = "two loops as one long loop"
    SWAP = "two loops change places"
    CORE = "the iterations of a loop divided among cores"
    LOCAL = "the threads of a group take elements of an axis"
    GROUP = "several threads share a reduction, taking turns"
    GROUPTOP = "several threads share a reduction, each a run of it"
    PADTO = "an axis made longer, with the new elements masked"
    ACCUMULATE = "sums kept in memory while rows go by"
    BLOCK = "several rows at a time go through all steps of a row"
    PARTIAL = "sums collected in scratch while parts of what is summed go by"
    CARRY = "a running maximum, and sums relative to it, while blocks of an axis go by"
    SWEEP = "blocks of rows go by, and sums over all rows are carried along"
    APART = "sums kept in scratch, and what becomes of them in a loop"
    WINDOW = "the part of a buffer that a loop reads, copied into scratch"
    SKIP = "steps of a sum that only add zeros left out"
    STAGE = "what a loop reads of a buffer, copied into scratch first"

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"OptOps.{self.name}"


@frozen
class Opt:
    """One move. `axis` is the number of a range; what `arg` is depends on the move."""

    op: OptOps
    axis: int
    arg: Any = None

    def __repr__(self) -> str:
        return f"Opt({self.op!r}, {self.axis}, {self.arg!r})"


Recipe = tuple[Opt, ...]


class IllegalMove(ValueError):
    """This move cannot be made on this nest; the message says why."""


def require(condition: bool, why: str) -> None:
    """An IllegalMove unless the condition holds."""
    if not condition:
        raise IllegalMove(why)
