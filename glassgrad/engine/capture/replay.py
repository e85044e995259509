"""Runs -> Capture -> Replay: the launches of a function as one table, prepared to run again.

`merge_runs` merges runs into one table over few base addresses: memory that is passed to each
replay, memory that is allocated for each, and an arena for temporaries. A Replay is that table,
prepared: one native call, however many launches.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import NamedTuple

from glassgrad.base.config import DEBUG
from glassgrad.base.counters import GlobalCounters
from glassgrad.base.dtype import dtypes
from glassgrad.base.events import LISTENERS
from glassgrad.base.fast_dataclasses import frozen, replace
from glassgrad.devices.protocol import Batch, Device
from glassgrad.engine.capture.recorder import Run
from glassgrad.engine.launch.error_cells import BadIndex, ErrorCells, cell_values, raise_bad_index
from glassgrad.engine.launch.one_by_one import calls_of, launch_one_by_one
from glassgrad.engine.plan.arena import Lifetime, assign_offsets
from glassgrad.engine.plan.plan import Rollback, make_rollback
from glassgrad.engine.verify.verify import is_verified
from glassgrad.ir.size import Bound
from glassgrad.ir.stages import Launch
from glassgrad.memory.poison import is_poisoned, poison
from glassgrad.memory.storage import Storage, restored_on_error
from glassgrad.memory.view import View


class Location(NamedTuple):
    """`offset` bytes from the start of a base."""

    base: int
    offset: int


@frozen
class Capture:
    """Launches over locations. Bases are the input storages, the allocated ones, and last the
    arena.

    `allocated` are empty stand-ins of the same sizes for the storages that runs allocated. The
    first `checked_launches` check all indices; the inputs that those overwrite are `saved`.
    """

    launches: list[Launch]
    locations: list[Location]
    inputs: list[Storage]
    allocated: list[Storage]
    arena_bytes: int
    device: Device
    cells: list[tuple[ErrorCells, View]]
    checked_launches: int = 0
    saved: tuple[int, ...] = ()


def merge_runs(
    runs: Sequence[Run], returned: set[Storage], device: Device
) -> tuple[Capture, dict[Storage, int]]:
    """One capture of all runs. Of the storages that they allocated, only `returned` ones outlive a
    replay: they are returned with their numbers.
    """
    cells = [(found, run.views[found.buffer]) for run in runs for found in run.plan.cells]
    allocated = dict.fromkeys(v.storage for run in runs for v in run.allocated)
    allocated |= dict.fromkeys(
        v.storage for run in runs for v in run.views if v.storage in run.unwritten
    )
    for _, view in cells:  # read after each replay, so the arena must not share their memory
        del allocated[view.storage]
    inputs = dict.fromkeys(
        v.storage for run in runs for v in run.views if v.storage not in allocated
    )
    returned_storages = [storage for storage in allocated if storage in returned]
    bases: dict[object, Location] = {s: Location(number, 0) for number, s in enumerate(inputs)}
    bases |= {s: Location(len(inputs) + i, 0) for i, s in enumerate(returned_storages)}
    offsets, arena_bytes = assign_offsets(_lifetimes(runs, bases.keys()))
    arena = len(bases)
    bases |= {owner: Location(arena, offset) for owner, offset in offsets.items()}
    locations: dict[Location, int] = {}
    launches = []
    for number, run in enumerate(runs):
        local_locations = _locations_of(run, number, bases)
        for launch in run.plan.launches:
            found = [local_locations[slot] for slot in launch.slots]
            slots = tuple([locations.setdefault(location, len(locations)) for location in found])
            launches.append(replace(launch, slots=slots))
    stand_ins = [Storage(s.device, s.size, s.dtype) for s in returned_storages]
    rollback = _rollback_of(runs, list(inputs))
    capture = Capture(
        launches, list(locations), list(inputs), stand_ins, arena_bytes, device, cells, *rollback
    )
    return capture, {storage: number for number, storage in enumerate(returned_storages)}


def _rollback_of(runs: Sequence[Run], inputs: list[Storage]) -> Rollback:
    """How input storages are restored if an index is out of range."""
    numbers = {storage: number for number, storage in enumerate(inputs)}
    checks: list[tuple[int, bool]] = []
    writes: list[list[int]] = []
    for run in runs:
        checks += [(len(writes) + c.launch, c.is_known) for c in run.plan.cells]
        for buffers in run.plan.writes:
            storages = [run.views[buffer].storage for buffer in buffers]
            writes.append([numbers[storage] for storage in storages if storage in numbers])
    return make_rollback(checks, writes)


def _lifetimes(runs: Sequence[Run], outside: Container[object]) -> dict[object, Lifetime]:
    """What the arena holds, and for which runs: temporaries of one run, values between runs."""
    lifetimes: dict[object, Lifetime] = {}
    for number, run in enumerate(runs):
        if run.plan.arena_bytes:
            lifetimes[number] = Lifetime(number, number, run.plan.arena_bytes)
        for view in run.views:
            storage = view.storage
            if storage not in outside:
                first = lifetimes[storage].first if storage in lifetimes else number
                lifetimes[storage] = Lifetime(first, number, storage.nbytes)
    return lifetimes


def _locations_of(run: Run, number: int, bases: dict[object, Location]) -> list[Location]:
    found = [
        Location(bases[v.storage].base, bases[v.storage].offset + v.offset * v.dtype.itemsize)
        for v in run.views
    ]
    if run.plan.offsets:
        arena = bases[number]
        found += [Location(arena.base, arena.offset + offset) for offset in run.plan.offsets]
    return found


class Replay:
    """A capture that is ready to run: only addresses that changed are written again."""

    def __init__(self, capture: Capture, values: Bound) -> None:
        self.capture = capture
        self.values = values
        self.storages = list(capture.inputs)  # the storages of this call
        count = len(capture.inputs) + len(capture.allocated)
        self.bases = [0] * (count + 1)
        self.slots: list[list[tuple[int, int, int]]] = [[] for _ in self.bases]
        for call, launch in enumerate(capture.launches):
            for slot, number in enumerate(launch.slots):
                location = capture.locations[number]
                self.slots[location.base].append((call, slot, location.offset))
        addresses = [0] * len(capture.locations)
        calls = calls_of(capture.launches, addresses, values)
        parts = [calls[: capture.checked_launches], calls[capture.checked_launches :]]
        self.batches = [capture.device.prepare(part) for part in parts if part or part is parts[1]]
        self.batch = self.batches[-1]  # the only one, unless indices are checked first
        for number, storage in enumerate(capture.inputs):
            self.set_base(number, storage.address)
        self.arena: Storage | None = None
        self.allocate_arena()
        self.launches = len(capture.launches)
        self.operations = sum(launch.operations for launch in capture.launches)
        self.bytes = sum(launch.bytes for launch in capture.launches)
        self.cells = [(cells, cell_values(view)) for cells, view in capture.cells]

    def allocate_arena(self) -> None:
        """Allocate the arena if it was freed."""
        if self.arena is None and (size := self.capture.arena_bytes):
            self.arena = Storage(self.capture.device.name, size, dtypes.uint8)
            self.set_base(len(self.bases) - 1, self.arena.allocate(zeroed=False).address)

    def free_arena(self) -> None:
        """Free the arena: what runs instead of a replay needs as much memory."""
        self.arena = None

    def set_base(self, base: int, address: int) -> None:
        """Set the address of a base for the following runs."""
        if self.bases[base] != address:
            self.bases[base] = address
            for call, slot, offset in self.slots[base]:
                batch, number_in_batch = self._batch_of(call)
                batch.set_pointer(number_in_batch, slot, address + offset)

    def _batch_of(self, call: int) -> tuple[Batch, int]:
        """The batch that a call is in, and its number there."""
        checked = self.capture.checked_launches
        return (self.batches[0], call) if call < checked else (self.batch, call - checked)

    def bind_variables(self, values: Bound) -> None:
        """Set the values of the variables for the following runs."""
        if values == self.values:
            return
        self.values = values
        for call, launch in enumerate(self.capture.launches):
            batch, number_in_batch = self._batch_of(call)
            for index, variable in enumerate(launch.variables):
                batch.set_value(number_in_batch, index, values[variable])

    def poison(self) -> None:
        """Fill the memory that the replay will write with a pattern: its storages and the arena."""
        sizes = [storage.nbytes for storage in self.capture.allocated] + [self.capture.arena_bytes]
        for address, nbytes in zip(self.bases[len(self.capture.inputs) :], sizes, strict=True):
            poison(address, nbytes)

    def run(self) -> None:
        self.allocate_arena()
        if is_poisoned():
            self.poison()
        if not self.cells:
            self._launch(lambda: None)
            return
        saved = [self.storages[number] for number in self.capture.saved]
        try:
            with restored_on_error(saved, BadIndex):
                self._launch(lambda: raise_bad_index(self.cells))
        except BadIndex as bad:
            raise bad.to_user_error(bad.checks) from None

    def _launch(self, then: Callable[[], None]) -> None:
        """Run the launches; `then` is called before the first write to inputs, and at the end."""
        if LISTENERS or DEBUG.value >= 2 or is_verified():
            addresses = [self.bases[p.base] + p.offset for p in self.capture.locations]
            capture, checked = self.capture, self.capture.checked_launches
            for launches in (capture.launches[:checked], capture.launches[checked:]):
                launch_one_by_one(launches, addresses, capture.device, self.values)
                then()
            return
        for batch in self.batches:
            batch.run()
            then()
        GlobalCounters.count(self.launches, self.operations, self.bytes)
