"""Plan: the launches of a graph, and the memory that each works on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

from glassgrad.base.dtype import DType
from glassgrad.base.fast_dataclasses import field, frozen, mutable, replace
from glassgrad.engine.launch.error_cells import ErrorCells
from glassgrad.ir.shape import Shape, Sizes
from glassgrad.ir.size import Bound, concrete
from glassgrad.ir.stages import Launch
from glassgrad.memory.view import View


@frozen
class Result:
    """How a root is read after the run: the view of buffer `buffer`, in a shape of its own.

    `is_new_version`: the buffer was assigned to, so its view is a new version.
    """

    buffer: int
    shape: Shape
    is_new_version: bool = False


@frozen
class Allocation:
    """A buffer that a run allocates: for a result, or, zeroed, for error cells."""

    shape: Shape
    dtype: DType
    is_zeroed: bool = False

    def view(self, device: str, values: Bound) -> View:
        """A new view; its memory and strides are those of the largest sizes."""
        if not Sizes.exist:
            return View.empty(device, self.shape, self.dtype)
        max_shape = tuple([int(n) for n in self.shape])
        whole = View.empty(device, max_shape, self.dtype)
        shape = concrete(self.shape, values)
        return whole if shape == max_shape else replace(whole, shape=shape)


class Rollback(NamedTuple):
    """After `split` launches all indices are checked; what those overwrite is saved before."""

    split: int
    saved: tuple[int, ...]


def make_rollback(checks: Sequence[tuple[int, bool]], writes: Sequence[Sequence[int]]) -> Rollback:
    """`checks` are (launch that checks indices, True if an earlier one has the same checks);
    `writes` are the buffers that each launch overwrites.
    """
    new = [launch for launch, is_known in checks if not is_known]
    split = max(new) + 1 if new and any(writes) else 0
    return Rollback(split, tuple(sorted({buffer for found in writes[:split] for buffer in found})))


@mutable
class Plan:
    """Launches over numbered memory: inputs, allocations, and offsets in an arena."""

    launches: list[Launch]
    inputs: int
    allocations: list[Allocation]
    offsets: list[int]
    arena_bytes: int
    results: list[Result]
    cells: list[ErrorCells] = field(default_factory=list)
    writes: list[tuple[int, ...]] = field(default_factory=list)  # inputs overwritten, by launch
    batches: list[Any] = field(default_factory=list)  # prepared calls, ready for reuse

    @cached_property
    def rollback(self) -> Rollback:
        """How inputs are restored if an index is out of range."""
        return make_rollback([(c.launch, c.is_known) for c in self.cells], self.writes)

    @cached_property
    def phases(self) -> list[list[Launch]]:
        """The launches; those after the last index check are a phase of their own."""
        parts = [self.launches[: self.rollback.split], self.launches[self.rollback.split :]]
        return [part for part in parts if part] or [[]]

    @cached_property
    def orders(self) -> list[list[int] | None]:
        """The buffer numbers of all slots of a phase; None if variables are among the arguments."""
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
