"""a GraphKey -> the step that an equal graph took before: which plan, on which buffers."""

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

    `ends` are the computed values: the nodes with that value, and whether its view is the written
    buffer's own. `ended` are the leaves that are overwritten, `bound` the values of variables that
    replaced numbers of the graph.
    """

    plan: Plan
    device: Machine
    leaves: tuple[int, ...]
    ends: tuple[tuple[tuple[int, ...], bool], ...]
    ended: tuple[int, ...]
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
    found = _look_up_once(values, holders, windows)
    if windows.open(found.graph_key.slices):
        found = _look_up_once(values, holders, windows)
    if windows.found and (storages := windows.ambiguous(found.graph_key.leaves)):
        windows.close(storages)
        found = _look_up_once(values, holders, windows)
    graph_key, step = found.graph_key, found.step
    if not graph_key.has_key or not graph_key.is_intact():
        return None
    if step is NEEDS_EXPANSION or (isinstance(step, CachedStep) and _is_valid(step)):
        return found
    return found._replace(step=None)


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
    found = STEPS.get(hash(key))
    return found[1] if found is not None and found[0] == key else None


def _put(key: Key, step: CachedStep | str) -> None:
    STEPS[hash(key)] = (key, step)


def _is_valid(step: CachedStep) -> bool:
    """True if the plan cache was not cleared since and the device is still open under its name."""
    is_open = Device.opened.get(step.device.name) is step.device
    return is_open and step.clear_count == PLANS.clear_count


class ComputedStep(NamedTuple):
    """How values were computed.

    `ends` are the computed nodes, with whether their view is the written buffer's own. `ended` are
    the overwritten buffers. `became` maps nodes of the key to their expansions.
    """

    made: BoundPlan
    ends: dict[UOp, bool]
    ended: Sequence[UOp]
    became: dict[UOp, UOp]
    needs_holders: bool


def store(found: Lookup, done: ComputedStep) -> None:
    """Cache a step for equal graphs."""
    graph_key, made = found.graph_key, done.made
    if done.needs_holders and not graph_key.has_holders:
        _put(found.key, NEEDS_HOLDERS)
        return
    positions = {leaf: position for position, leaf in enumerate(graph_key.leaves)}
    numbers: dict[UOp, list[int]] = {}
    for node, number in graph_key.numbers.items():
        numbers.setdefault(done.became.get(node, node), []).append(number)
    is_known = done.ends.keys() <= numbers.keys()
    if not is_known and any(isinstance(node.arg, Composite) for node in graph_key.numbers):
        _put(found.key, NEEDS_EXPANSION)
        return
    # Otherwise the plan copies what it overwrites, or runs on the default device of the moment.
    if made.leaves and is_known and {*made.leaves, *done.ended} <= positions.keys():
        step = CachedStep(
            made.plan,
            made.device,
            tuple([positions[leaf] for leaf in made.leaves]),
            tuple([(tuple(numbers[root]), is_same) for root, is_same in done.ends.items()]),
            tuple([positions[buffer] for buffer in done.ended]),
            PLANS.clear_count,
            made.values,
        )
        _put(found.key, step)
