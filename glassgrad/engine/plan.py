"""Plan: which launches there are, and which memory each of them works on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from glassgrad.base.dtype import DType
from glassgrad.base.records import field, frozen, mutable, replace
from glassgrad.engine.bad_index import Cells
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


def first_write(writes: Sequence[Sequence[int]]) -> int:
    """The first launch that writes to one of these; as many as there are, if none does."""
    return next((number for number, found in enumerate(writes) if found), len(writes))


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
    def phases(self) -> list[list[Launch]]:
        """The launches; those that write to memory which was there before come behind those that
        find bad indices.
        """
        split = first_write(self.writes) if self.cells else 0
        parts = [self.launches[:split], self.launches[split:]]
        return [part for part in parts if part] or [[]]

    @cached_property
    def saved(self) -> list[int]:
        """The incoming buffers that are written before all indices are known to be good."""
        split = first_write(self.writes)
        if all(cells.launch < split or cells.is_known for cells in self.cells):
            return []
        return sorted({place for places in self.writes for place in places})

    @cached_property
    def orders(self) -> list[list[int]]:
        """The places of all slots of the launches of each phase."""
        return [[found for launch in part for found in launch.slots] for part in self.phases]

    @cached_property
    def operations(self) -> int:
        return sum(launch.operations for launch in self.launches)

    @cached_property
    def bytes(self) -> int:
        return sum(launch.bytes for launch in self.launches)
