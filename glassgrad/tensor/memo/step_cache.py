"""A GraphKey -> the step that an equal graph took before: which plan, on which buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from glassgrad.devices.registry import Device
from glassgrad.engine.cache.graph_keys import PLANS, Cache
from glassgrad.ir.size import Bound
from glassgrad.ir.uop import UOp
from glassgrad.tensor.lazy.composite import Composite
from glassgrad.tensor.memo.graph_key import GraphKey
from glassgrad.tensor.memo.slice_windows import SliceWindows

if TYPE_CHECKING:
    from glassgrad.devices.protocol import Device as Machine
    from glassgrad.engine.pipeline import BoundPlan
    from glassgrad.engine.plan.plan import Plan


class CachedStep(NamedTuple):
    """How a graph was computed, in terms of the numbers of its key's nodes and leaves.

    `results` are the computed values: the nodes with that value, and whether it is a new version of
    a written buffer. `overwritten` are leaves, `bound` the values of variables that replaced
    numbers of the graph.
    """

    plan: Plan
    device: Machine
    leaves: tuple[int, ...]
    results: tuple[tuple[tuple[int, ...], bool], ...]
    overwritten: tuple[int, ...]
    clear_count: int
    bound: Bound


# Stored instead of a step: what a lookup of this key must do first.
NEEDS_HOLDERS = "needs holders"  # add the nodes that live tensors hold to the key
NEEDS_EXPANSION = "needs expansion"  # expand composites: a value inside of one is materialized
Key = tuple[Any, ...]
STEPS: Cache[tuple[Key, CachedStep | str]] = Cache(256)  # by the hash of the key, as keys are long


class Lookup(NamedTuple):
    """A graph key and the step that is cached for it, if any."""

    graph_key: GraphKey
    key: Key
    step: CachedStep | str | None


def look_up(
    values: Sequence[UOp], holders: Callable[[], list[UOp]], windows: SliceWindows
) -> Lookup | None:
    """The key of the graph of these values, with its cached step.

    None if the key does not determine the computation. `holders` returns the nodes of all live
    tensors. Slices become windows where nothing else of their storage is read.
    """
    lookup = _look_up_once(values, holders, windows)
    if windows.open(lookup.graph_key.slices):
        lookup = _look_up_once(values, holders, windows)
    if windows.found and (storages := windows.ambiguous(lookup.graph_key.leaves)):
        windows.close(storages)
        lookup = _look_up_once(values, holders, windows)
    graph_key, step = lookup.graph_key, lookup.step
    if not graph_key.has_key or not graph_key.is_intact():
        return None
    if step is NEEDS_EXPANSION or (isinstance(step, CachedStep) and _is_valid(step)):
        return lookup
    return lookup._replace(step=None)


def _look_up_once(
    values: Sequence[UOp], holders: Callable[[], list[UOp]], windows: SliceWindows
) -> Lookup:
    graph_key = GraphKey()
    graph_key.add(values)
    if graph_key.has_writes:
        graph_key.add_holders(holders())
    graph_key.add_graphs(windows.found)
    key = graph_key.key()
    step = _cached(key)
    if step is NEEDS_HOLDERS:
        graph_key.add_holders(holders())
        graph_key.add_graphs(windows.found)
        key = graph_key.key()
        step = _cached(key)
    return Lookup(graph_key, key, step)


def _cached(key: Key) -> CachedStep | str | None:
    lookup = STEPS.get(hash(key))
    return lookup[1] if lookup is not None and lookup[0] == key else None


def _put(key: Key, step: CachedStep | str) -> None:
    STEPS[hash(key)] = (key, step)


def _is_valid(step: CachedStep) -> bool:
    """True if the plan cache was not cleared since and the device is still open under its name."""
    is_open = Device.opened.get(step.device.name) is step.device
    return is_open and step.clear_count == PLANS.clear_count


class ComputedStep(NamedTuple):
    """How values were computed.

    `results` are the computed nodes, with whether each is a new version of a written buffer.
    `overwritten` are buffers. `expansions` maps deferred nodes of the key to their expansions.
    """

    bound_plan: BoundPlan
    results: dict[UOp, bool]
    overwritten: Sequence[UOp]
    expansions: dict[UOp, UOp]
    needs_holders: bool


def store(lookup: Lookup, done: ComputedStep) -> None:
    """Cache a step for equal graphs."""
    graph_key, bound_plan = lookup.graph_key, done.bound_plan
    if done.needs_holders and not graph_key.has_holders:
        _put(lookup.key, NEEDS_HOLDERS)
        return
    positions = {leaf: position for position, leaf in enumerate(graph_key.leaves)}
    numbers: dict[UOp, list[int]] = {}
    for node, number in graph_key.numbers.items():
        numbers.setdefault(done.expansions.get(node, node), []).append(number)
    is_known = done.results.keys() <= numbers.keys()
    if not is_known and any(isinstance(node.arg, Composite) for node in graph_key.numbers):
        _put(lookup.key, NEEDS_EXPANSION)
        return
    # Otherwise the plan copies what it overwrites, or runs on the default device of the moment.
    if (
        bound_plan.leaves
        and is_known
        and {*bound_plan.leaves, *done.overwritten} <= positions.keys()
    ):
        step = CachedStep(
            bound_plan.plan,
            bound_plan.device,
            tuple([positions[leaf] for leaf in bound_plan.leaves]),
            tuple(
                [
                    (tuple(numbers[root]), is_new_version)
                    for root, is_new_version in done.results.items()
                ]
            ),
            tuple([positions[buffer] for buffer in done.overwritten]),
            PLANS.clear_count,
            bound_plan.values,
        )
        _put(lookup.key, step)
