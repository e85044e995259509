"""Plan: which launches there are, and which memory each of them works on."""

from __future__ import annotations

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
    batches: list[Any] = field(default_factory=list)  # prepared calls that nobody uses now

    @cached_property
    def order(self) -> list[int]:
        """The places of all slots of all launches."""
        return [found for launch in self.launches for found in launch.slots]

    @cached_property
    def operations(self) -> int:
        return sum(launch.operations for launch in self.launches)

    @cached_property
    def bytes(self) -> int:
        return sum(launch.bytes for launch in self.launches)
