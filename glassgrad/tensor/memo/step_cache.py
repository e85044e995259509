"""an Outline -> the Course that was taken for the same one before: which plan, on which buffers."""

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
    """What was done for an outline, by the numbers of its nodes and leaves.

    `ends` are the values that were computed: the nodes that stand for one, and whether its view is
    the written buffer's own. `ended` are the leaves whose contents are overwritten, `bound` the
    values of variables that numbers of the graph became.
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
STEPS: Cache[tuple[Key, CachedStep | str]] = Cache(256)  # by hashes of keys, which are long


class Lookup(NamedTuple):
    """An outline, its key, and what was done for the same key before, if something was."""

    outline: GraphKey
    key: Key
    course: CachedStep | str | None


def look_up(
    values: Sequence[UOp], holders: Callable[[], list[UOp]], windows: SliceWindows
) -> Lookup | None:
    """The outline of values, and the course that was taken for the same one before.

    None if what is to be done cannot be known from an outline. `holders` gives what every living
    tensor holds. Slices become windows where nothing else of their storage is read.
    """
    found = _look_up_once(values, holders, windows)
    if windows.open(found.outline.slices):
        found = _look_up_once(values, holders, windows)
    if windows.found and (storages := windows.ambiguous(found.outline.leaves)):
        windows.close(storages)
        found = _look_up_once(values, holders, windows)
    outline, course = found.outline, found.course
    if not outline.is_plain or not outline.is_sound():
        return None
    if course is NEEDS_EXPANSION or (isinstance(course, CachedStep) and _is_valid(course)):
        return found
    return found._replace(course=None)


def _look_up_once(
    values: Sequence[UOp], holders: Callable[[], list[UOp]], windows: SliceWindows
) -> Lookup:
    outline = GraphKey()
    outline.add(values)
    if outline.has_writes:
        outline.add_holders(holders())
    outline.add_graphs(windows.found)
    key = outline.key()
    course = _cached(key)
    if course is NEEDS_HOLDERS:
        outline.add_holders(holders())
        outline.add_graphs(windows.found)
        key = outline.key()
        course = _cached(key)
    return Lookup(outline, key, course)


def _cached(key: Key) -> CachedStep | str | None:
    found = STEPS.get(hash(key))
    return found[1] if found is not None and found[0] == key else None


def _put(key: Key, course: CachedStep | str) -> None:
    STEPS[hash(key)] = (key, course)


def _is_valid(course: CachedStep) -> bool:
    """Whether plans were not forgotten since, and the device is still the one of its name."""
    is_open = Device.opened.get(course.device.name) is course.device
    return is_open and course.clear_count == PLANS.clear_count


class ComputedStep(NamedTuple):
    """What was done to compute values.

    `ends` are the nodes that were computed, with whether their view is the written buffer's own,
    `ended` are the buffers that are overwritten, and `became` says what the nodes of the outline
    became whose graphs were written.
    """

    made: BoundPlan
    ends: dict[UOp, bool]
    ended: Sequence[UOp]
    became: dict[UOp, UOp]
    needs_holders: bool


def store(found: Lookup, done: ComputedStep) -> None:
    """Do the same next time."""
    outline, made = found.outline, done.made
    if done.needs_holders and not outline.has_holders:
        _put(found.key, NEEDS_HOLDERS)
        return
    places = {leaf: place for place, leaf in enumerate(outline.leaves)}
    numbers: dict[UOp, list[int]] = {}
    for node, number in outline.numbers.items():
        numbers.setdefault(done.became.get(node, node), []).append(number)
    is_known = done.ends.keys() <= numbers.keys()
    if not is_known and any(isinstance(node.arg, Composite) for node in outline.numbers):
        _put(found.key, NEEDS_EXPANSION)
        return
    # Otherwise it is a copy of what is overwritten, or on whichever device is the usual one.
    if made.leaves and is_known and {*made.leaves, *done.ended} <= places.keys():
        course = CachedStep(
            made.plan,
            made.device,
            tuple([places[leaf] for leaf in made.leaves]),
            tuple([(tuple(numbers[root]), is_same) for root, is_same in done.ends.items()]),
            tuple([places[buffer] for buffer in done.ended]),
            PLANS.clear_count,
            made.values,
        )
        _put(found.key, course)
