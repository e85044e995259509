"""Plan, buffers -> results: allocate, fill in addresses, launch."""

from __future__ import annotations

from collections.abc import Sequence

from glassgrad.base.config import DEBUG
from glassgrad.base.counters import GlobalCounters
from glassgrad.base.dtype import dtypes
from glassgrad.base.events import LISTENERS
from glassgrad.devices.protocol import Batch, Device
from glassgrad.engine.bad_index import look_for_bad_index, words_of
from glassgrad.engine.launching import calls_of, launch_one_by_one
from glassgrad.engine.plan import Plan, Result
from glassgrad.engine.recording import Run, recorder
from glassgrad.engine.verify import is_verified
from glassgrad.ir.shape import Sizes
from glassgrad.ir.size import UNBOUND, Bound, concrete, sizes_in
from glassgrad.ir.uop import UOp
from glassgrad.memory.storage import Storage
from glassgrad.memory.view import View


def run(
    plan: Plan, leaves: Sequence[UOp], device: Device, values: Bound = UNBOUND
) -> tuple[View, ...]:
    """Run a plan on these buffers, with these values of variables."""
    views: list[View] = [leaf.arg for leaf in leaves]
    watching = recorder()
    blank = _blank(views) if watching is not None else frozenset()
    for made in plan.made:
        view = made.view(device.name, values)
        view.storage.allocate(zeroed=made.is_zeroed)
        views.append(view)
    addresses = [view.address for view in views]
    if plan.offsets:  # `arena` lives until the launches are done
        arena = Storage(device.name, plan.arena_bytes, dtypes.uint8).allocate(zeroed=False)
        addresses += [arena.address + offset for offset in plan.offsets]
    if LISTENERS or DEBUG.value >= 2 or is_verified():
        launch_one_by_one(plan.launches, addresses, device, values)
    elif plan.launches:
        _launch(plan, addresses, device, values)
    if plan.cells:  # before anybody hears of a run that failed
        look_for_bad_index([(cells, words_of(views[cells.place])) for cells in plan.cells])
    results = tuple([_result(views[end.place], end, values) for end in plan.results])
    if watching is not None:
        watching.runs.append(Run(plan, leaves, views[len(leaves) :], device, blank))
        pairs = zip(results, plan.results, strict=True)
        watching.sized |= {view: end.shape for view, end in pairs if sizes_in(end.shape)}
    return results


def _blank(views: Sequence[View]) -> frozenset[Storage]:
    """The storages of these views that nobody has written to."""
    return frozenset([view.storage for view in views if not view.storage.is_allocated()])


def _result(view: View, end: Result, values: Bound) -> View:
    if end.is_renewed:
        view = view.renewed()
    shape = concrete(end.shape, values) if Sizes.exist else end.shape
    return view if view.shape == shape else view.reshaped(shape)


def _launch(plan: Plan, addresses: list[int], device: Device, values: Bound) -> None:
    """All launches in one native call, where the device has that."""
    try:
        batch: Batch = plan.batches.pop()
    except IndexError:
        batch = device.prepare(calls_of(plan.launches, addresses, values))
    else:
        if values:
            words = [
                word
                for launch in plan.launches
                for part in (
                    [addresses[found] for found in launch.slots],
                    [values[variable] for variable in launch.variables],
                )
                for word in part
            ]
        else:
            words = [addresses[found] for found in plan.order]
        batch.set_words(words)
    batch.run()
    plan.batches.append(batch)
    GlobalCounters.count(len(plan.launches), plan.operations, plan.bytes)
