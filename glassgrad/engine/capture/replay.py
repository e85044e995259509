"""runs -> Capture -> Replay: what a function computed, as one list of launches to run again.

`join` writes runs as one table over few bases: memory that is given at each replay, memory that is
made anew for each, and an arena for all that nobody sees. A Replay is that table, prepared: one
native call, whatever its length.
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
from glassgrad.engine.launch.error_flags import BadIndex, Cells, look_for_bad_index, words_of
from glassgrad.engine.launch.one_by_one import calls_of, launch_one_by_one
from glassgrad.engine.plan.arena import Life, assign_offsets
from glassgrad.engine.plan.plan import Guard, guard
from glassgrad.engine.verify.verify import is_verified
from glassgrad.ir.size import Bound
from glassgrad.ir.stages import Launch
from glassgrad.memory.poison import is_poisoned, poison
from glassgrad.memory.storage import Storage, as_before
from glassgrad.memory.view import View


class Place(NamedTuple):
    """So many bytes behind the start of a base."""

    base: int
    offset: int


@frozen
class Capture:
    """Launches over places. Bases are the given storages, the made ones, and last the arena.

    `made` are not the storages that runs made, but others of their sizes that have no memory.
    After the `guarded` launches all indices are known to be good; the given storages that those
    overwrite are `saved`.
    """

    launches: list[Launch]
    places: list[Place]
    given: list[Storage]
    made: list[Storage]
    arena_bytes: int
    device: Device
    cells: list[tuple[Cells, View]]
    guarded: int = 0
    saved: tuple[int, ...] = ()


def join(
    runs: Sequence[Run], returned: set[Storage], device: Device
) -> tuple[Capture, dict[Storage, int]]:
    """One capture of all runs. Of what they made, only the returned storages outlive a replay: they
    come back with their numbers.
    """
    cells = [(found, run.views[found.place]) for run in runs for found in run.plan.cells]
    made = dict.fromkeys(v.storage for run in runs for v in run.made)
    made |= dict.fromkeys(v.storage for run in runs for v in run.views if v.storage in run.blank)
    for _, view in cells:  # they are looked at after each replay, so nobody else writes there
        del made[view.storage]
    given = dict.fromkeys(v.storage for run in runs for v in run.views if v.storage not in made)
    fresh = [storage for storage in made if storage in returned]
    bases: dict[object, Place] = {s: Place(number, 0) for number, s in enumerate(given)}
    bases |= {s: Place(len(given) + i, 0) for i, s in enumerate(fresh)}
    offsets, arena_bytes = assign_offsets(_lives(runs, bases.keys()))
    arena = len(bases)
    bases |= {owner: Place(arena, offset) for owner, offset in offsets.items()}
    places: dict[Place, int] = {}
    launches = []
    for number, run in enumerate(runs):
        local_places = _places_of(run, number, bases)
        for launch in run.plan.launches:
            found = [local_places[slot] for slot in launch.slots]
            slots = tuple([places.setdefault(place, len(places)) for place in found])
            launches.append(replace(launch, slots=slots))
    like = [Storage(s.device, s.size, s.dtype) for s in fresh]
    safe = _guard(runs, list(given))
    capture = Capture(launches, list(places), list(given), like, arena_bytes, device, cells, *safe)
    return capture, {storage: number for number, storage in enumerate(fresh)}


def _guard(runs: Sequence[Run], given: list[Storage]) -> Guard:
    """How given storages are protected from bad indices."""
    numbers = {storage: number for number, storage in enumerate(given)}
    checks: list[tuple[int, bool]] = []
    writes: list[list[int]] = []
    for run in runs:
        checks += [(len(writes) + c.launch, c.is_known) for c in run.plan.cells]
        for places in run.plan.writes:
            storages = [run.views[place].storage for place in places]
            writes.append([numbers[storage] for storage in storages if storage in numbers])
    return guard(checks, writes)


def _lives(runs: Sequence[Run], outside: Container[object]) -> dict[object, Life]:
    """What lies in the arena, and for which runs: temporaries of a run, values between runs."""
    lives: dict[object, Life] = {}
    for number, run in enumerate(runs):
        if run.plan.arena_bytes:
            lives[number] = Life(number, number, run.plan.arena_bytes)
        for view in run.views:
            storage = view.storage
            if storage not in outside:
                first = lives[storage].first if storage in lives else number
                lives[storage] = Life(first, number, storage.nbytes)
    return lives


def _places_of(run: Run, number: int, bases: dict[object, Place]) -> list[Place]:
    found = [
        Place(bases[v.storage].base, bases[v.storage].offset + v.offset * v.dtype.itemsize)
        for v in run.views
    ]
    if run.plan.offsets:
        arena = bases[number]
        found += [Place(arena.base, arena.offset + offset) for offset in run.plan.offsets]
    return found


class Replay:
    """A capture that is ready to run: only addresses that changed are filled in again."""

    def __init__(self, capture: Capture, values: Bound) -> None:
        self.capture = capture
        self.values = values
        self.storages = list(capture.given)  # which those are in this call
        count = len(capture.given) + len(capture.made)
        self.bases = [0] * (count + 1)
        self.slots: list[list[tuple[int, int, int]]] = [[] for _ in self.bases]
        for call, launch in enumerate(capture.launches):
            for slot, number in enumerate(launch.slots):
                place = capture.places[number]
                self.slots[place.base].append((call, slot, place.offset))
        addresses = [0] * len(capture.places)
        calls = calls_of(capture.launches, addresses, values)
        parts = [calls[: capture.guarded], calls[capture.guarded :]]
        self.batches = [capture.device.prepare(part) for part in parts if part or part is parts[1]]
        self.batch = self.batches[-1]  # the only one, unless indices are checked before writes
        for number, storage in enumerate(capture.given):
            self.point(number, storage.address)
        self.arena: Storage | None = None
        self.hold_arena()
        self.launches = len(capture.launches)
        self.operations = sum(launch.operations for launch in capture.launches)
        self.bytes = sum(launch.bytes for launch in capture.launches)
        self.cells = [(cells, words_of(view)) for cells, view in capture.cells]

    def hold_arena(self) -> None:
        """Allocate the memory that nobody sees, if it was given back."""
        if self.arena is None and (size := self.capture.arena_bytes):
            self.arena = Storage(self.capture.device.name, size, dtypes.uint8)
            self.point(len(self.bases) - 1, self.arena.allocate(zeroed=False).address)

    def release_arena(self) -> None:
        """Give it back: what runs instead of a replay needs as much."""
        self.arena = None

    def point(self, base: int, address: int) -> None:
        """Let a base be at this address from now on."""
        if self.bases[base] != address:
            self.bases[base] = address
            for call, slot, offset in self.slots[base]:
                batch, own = self._batch_of(call)
                batch.set_pointer(own, slot, address + offset)

    def _batch_of(self, call: int) -> tuple[Batch, int]:
        """The batch that a call is in, and its number there."""
        guarded = self.capture.guarded
        return (self.batches[0], call) if call < guarded else (self.batch, call - guarded)

    def bind(self, values: Bound) -> None:
        """Give the variables these values from now on."""
        if values == self.values:
            return
        self.values = values
        for call, launch in enumerate(self.capture.launches):
            batch, own = self._batch_of(call)
            for place, variable in enumerate(launch.variables):
                batch.set_value(own, place, values[variable])

    def poison(self) -> None:
        """Fill what this replay writes first: the storages it makes, and the arena."""
        sizes = [storage.nbytes for storage in self.capture.made] + [self.capture.arena_bytes]
        for address, nbytes in zip(self.bases[len(self.capture.given) :], sizes, strict=True):
            poison(address, nbytes)

    def run(self) -> None:
        self.hold_arena()
        if is_poisoned():
            self.poison()
        if not self.cells:
            self._launch(lambda: None)
            return
        saved = [self.storages[number] for number in self.capture.saved]
        try:
            with as_before(saved, BadIndex):
                self._launch(lambda: look_for_bad_index(self.cells))
        except BadIndex as bad:
            raise bad.explained(bad.checks) from None

    def _launch(self, then: Callable[[], None]) -> None:
        """Run the launches; `then` is called before the first write to what is given, and after."""
        if LISTENERS or DEBUG.value >= 2 or is_verified():
            addresses = [self.bases[p.base] + p.offset for p in self.capture.places]
            capture, guarded = self.capture, self.capture.guarded
            for launches in (capture.launches[:guarded], capture.launches[guarded:]):
                launch_one_by_one(launches, addresses, capture.device, self.values)
                then()
            return
        for batch in self.batches:
            batch.run()
            then()
        GlobalCounters.count(self.launches, self.operations, self.bytes)
