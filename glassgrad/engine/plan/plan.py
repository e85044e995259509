"""Plan: which launches there are, and which memory each of them works on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

from glassgrad.base.dtype import DType
from glassgrad.base.fast_dataclasses import field, frozen, mutable, replace
from glassgrad.engine.launch.error_flags import Cells
from glassgrad.ir.shape import Shape, Sizes
from glassgrad.ir.size import Bound, concrete
from glassgrad.ir.stages import Launch
from glassgrad.memory.view import View


@frozen
class Result:
    """How a root is found after the run: view `place` of the buffers, in a shape of its own.

    `is_renewed`: the buffer was assigned to, so its view is a new version.
    """

    place: int
    shape: Shape
    is_renewed: bool = False


@frozen
class Made:
    """A buffer that a run allocates: for a result, or, of zeros, for bad indices."""

    shape: Shape
    dtype: DType
    is_zeroed: bool = False

    def view(self, device: str, values: Bound) -> View:
        """A new one. It has room for the largest sizes, and lies in memory as if it had them."""
        if not Sizes.exist:
            return View.empty(device, self.shape, self.dtype)
        room = tuple([int(n) for n in self.shape])
        whole = View.empty(device, room, self.dtype)
        shape = concrete(self.shape, values)
        return whole if shape == room else replace(whole, shape=shape)


class Guard(NamedTuple):
    """All indices are known to be good after `split` launches; what those write is saved before."""

    split: int
    saved: tuple[int, ...]


def guard(checks: Sequence[tuple[int, bool]], writes: Sequence[Sequence[int]]) -> Guard:
    """`checks` are launches that check indices, and whether an earlier one has checked the same;
    `writes` says for each launch what it overwrites.
    """
    new = [launch for launch, is_known in checks if not is_known]
    split = max(new) + 1 if new and any(writes) else 0
    return Guard(split, tuple(sorted({place for found in writes[:split] for place in found})))


@mutable
class Plan:
    """Launches, and the places they work on: incoming buffers, those made, offsets in an arena."""

    launches: list[Launch]
    inputs: int
    made: list[Made]
    offsets: list[int]
    arena_bytes: int
    results: list[Result]
    cells: list[Cells] = field(default_factory=list)
    writes: list[tuple[int, ...]] = field(default_factory=list)  # incoming buffers, by launch
    batches: list[Any] = field(default_factory=list)  # prepared calls that nobody uses now

    @cached_property
    def guard(self) -> Guard:
        """How memory that was there before is protected from bad indices."""
        return guard([(c.launch, c.is_known) for c in self.cells], self.writes)

    @cached_property
    def phases(self) -> list[list[Launch]]:
        """The launches; where indices are checked, those behind the last check come apart."""
        parts = [self.launches[: self.guard.split], self.launches[self.guard.split :]]
        return [part for part in parts if part] or [[]]

    @cached_property
    def orders(self) -> list[list[int] | None]:
        """The buffer numbers of all slots of a phase's launches; None where variables lie between
        them.
        """
        return [
            None
            if any(launch.variables for launch in part)
            else [found for launch in part for found in launch.slots]
            for part in self.phases
        ]

    @cached_property
    def operations(self) -> int:
        return sum(launch.operations for launch in self.launches)

    @cached_property
    def bytes(self) -> int:
        return sum(launch.bytes for launch in self.launches)
