"""Plan, buffers -> results: allocate, fill in addresses, launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from glassgrad.base.config import DEBUG
from glassgrad.base.counters import GlobalCounters
from glassgrad.base.dtype import dtypes
from glassgrad.base.events import LISTENERS
from glassgrad.devices.protocol import Batch, Device
from glassgrad.engine.capture.recorder import Run, active_recorder
from glassgrad.engine.launch.error_cells import BadIndex, cell_values, raise_bad_index
from glassgrad.engine.launch.one_by_one import calls_of, launch_one_by_one
from glassgrad.engine.plan.plan import Plan, Result
from glassgrad.engine.verify.verify import is_verified
from glassgrad.ir.shape import Sizes
from glassgrad.ir.size import UNBOUND, Bound, concrete, sizes_in
from glassgrad.ir.uop import UOp
from glassgrad.memory.storage import Storage, restored_on_error
from glassgrad.memory.view import View


def run(
    plan: Plan, leaves: Sequence[UOp], device: Device, values: Bound = UNBOUND
) -> tuple[View, ...]:
    """Run a plan on these buffers, with these values of its variables."""
    views: list[View] = [leaf.arg for leaf in leaves]
    recorder = active_recorder()
    unwritten = _unwritten_storages(views) if recorder is not None else frozenset()
    for allocation in plan.allocations:
        view = allocation.view(device.name, values)
        view.storage.allocate(zeroed=allocation.is_zeroed)
        views.append(view)
    addresses = [view.address for view in views]
    if plan.offsets:  # `arena` lives until the launches are done
        arena = Storage(device.name, plan.arena_bytes, dtypes.uint8).allocate(zeroed=False)
        addresses += [arena.address + offset for offset in plan.offsets]
    if plan.cells:
        _launch_checked(plan, views, addresses, device, values)
    else:
        _launch(plan, addresses, device, values, lambda: None)
    results = tuple([_result(views[end.buffer], end, values) for end in plan.results])
    if recorder is not None:
        recorder.runs.append(
            Run(plan, leaves, views[len(leaves) :], device, unwritten, recorder.values)
        )
        pairs = zip(results, plan.results, strict=True)
        recorder.symbolic_results |= {view: end.shape for view, end in pairs if sizes_in(end.shape)}
    return results


def _unwritten_storages(views: Sequence[View]) -> frozenset[Storage]:
    """The storages of these views that have never been written to."""
    return frozenset([view.storage for view in views if not view.storage.is_allocated()])


def _result(view: View, end: Result, values: Bound) -> View:
    if end.is_new_version:
        view = view.new_version()
    shape = concrete(end.shape, values) if Sizes.exist else end.shape
    return view if view.shape == shape else view.reshaped(shape)


def _launch_checked(
    plan: Plan, views: Sequence[View], addresses: list[int], device: Device, values: Bound
) -> None:
    """Launch; raises BadIndex for an out-of-range index, with all memory that existed before
    unchanged.
    """
    found = [(cells, cell_values(views[cells.buffer])) for cells in plan.cells]
    with restored_on_error([views[number].storage for number in plan.rollback.saved], BadIndex):
        _launch(plan, addresses, device, values, lambda: raise_bad_index(found))


def _launch(
    plan: Plan,
    addresses: list[int],
    device: Device,
    values: Bound,
    then: Callable[[], None],
) -> None:
    """Run the launches; `then` is called after each phase."""
    if LISTENERS or DEBUG.value >= 2 or is_verified():
        for launches in plan.phases:
            launch_one_by_one(launches, addresses, device, values)
            then()
        return
    if not plan.launches:
        return
    batches = _batches(plan, addresses, device, values)
    for batch in batches:
        batch.run()
        then()
    plan.batches.append(batches)
    GlobalCounters.count(len(plan.launches), plan.operations, plan.bytes)


def _batches(plan: Plan, addresses: list[int], device: Device, values: Bound) -> list[Batch]:
    """A native call for each phase, where the device has that."""
    try:
        batches: list[Batch] = plan.batches.pop()
    except IndexError:
        return [device.prepare(calls_of(part, addresses, values)) for part in plan.phases]
    for batch, launches, order in zip(batches, plan.phases, plan.orders, strict=True):
        if order is None:
            words = [
                word
                for launch in launches
                for part in (
                    [addresses[found] for found in launch.slots],
                    [values[variable] for variable in launch.variables],
                )
                for word in part
            ]
        else:
            words = [addresses[found] for found in order]
        batch.set_words(words)
    return batches
