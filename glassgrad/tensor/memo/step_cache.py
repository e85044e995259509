"""an Outline -> the Course that was taken for the same one before: which plan, on which buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from glassgrad.devices.registry import Device
from glassgrad.engine.cache.graph_keys import PLANS, Cache
from glassgrad.ir.size import Bound
from glassgrad.ir.uop import UOp
from glassgrad.tensor.lazy.composite import Composite
from glassgrad.tensor.memo.graph_key import Outline
from glassgrad.tensor.memo.slice_windows import Windows

if TYPE_CHECKING:
    from glassgrad.devices.protocol import Device as Machine
    from glassgrad.engine.pipeline import BoundPlan
    from glassgrad.engine.plan.plan import Plan


class Course(NamedTuple):
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


WIDER = "wider"  # what the living tensors hold decides as well
WRITTEN = "written"  # something is kept of what one node stands for: composites are written first
Key = tuple[Any, ...]
COURSES: Cache[tuple[Key, Course | str]] = Cache(256)  # by hashes of keys, which are long


class Found(NamedTuple):
    """An outline, its key, and what was done for the same key before, if something was."""

    outline: Outline
    key: Key
    course: Course | str | None


def recognised(
    values: Sequence[UOp], holders: Callable[[], list[UOp]], windows: Windows
) -> Found | None:
    """The outline of values, and the course that was taken for the same one before.

    None if what is to be done cannot be known from an outline. `holders` gives what every living
    tensor holds. Slices become windows where nothing else of their storage is read.
    """
    found = _looked_up(values, holders, windows)
    if windows.open(found.outline.slices):
        found = _looked_up(values, holders, windows)
    if windows.found and (storages := windows.ambiguous(found.outline.leaves)):
        windows.close(storages)
        found = _looked_up(values, holders, windows)
    outline, course = found.outline, found.course
    if not outline.is_plain or not outline.is_sound():
        return None
    if course is WRITTEN or (isinstance(course, Course) and _is_valid(course)):
        return found
    return found._replace(course=None)


def _looked_up(values: Sequence[UOp], holders: Callable[[], list[UOp]], windows: Windows) -> Found:
    outline = Outline()
    outline.add(values)
    if outline.has_writes:
        outline.add_holders(holders())
    outline.add_graphs(windows.found)
    key = outline.key()
    course = _known(key)
    if course is WIDER:
        outline.add_holders(holders())
        outline.add_graphs(windows.found)
        key = outline.key()
        course = _known(key)
    return Found(outline, key, course)


def _known(key: Key) -> Course | str | None:
    found = COURSES.get(hash(key))
    return found[1] if found is not None and found[0] == key else None


def _remember(key: Key, course: Course | str) -> None:
    COURSES[hash(key)] = (key, course)


def _is_valid(course: Course) -> bool:
    """Whether plans were not forgotten since, and the device is still the one of its name."""
    is_open = Device.opened.get(course.device.name) is course.device
    return is_open and course.clear_count == PLANS.clear_count


class Done(NamedTuple):
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


def remember(found: Found, done: Done) -> None:
    """Do the same next time."""
    outline, made = found.outline, done.made
    if done.needs_holders and not outline.has_holders:
        _remember(found.key, WIDER)
        return
    places = {leaf: place for place, leaf in enumerate(outline.leaves)}
    numbers: dict[UOp, list[int]] = {}
    for node, number in outline.numbers.items():
        numbers.setdefault(done.became.get(node, node), []).append(number)
    is_known = done.ends.keys() <= numbers.keys()
    if not is_known and any(isinstance(node.arg, Composite) for node in outline.numbers):
        _remember(found.key, WRITTEN)
        return
    # Otherwise it is a copy of what is overwritten, or on whichever device is the usual one.
    if made.leaves and is_known and {*made.leaves, *done.ended} <= places.keys():
        course = Course(
            made.plan,
            made.device,
            tuple([places[leaf] for leaf in made.leaves]),
            tuple([(tuple(numbers[root]), is_same) for root, is_same in done.ends.items()]),
            tuple([places[buffer] for buffer in done.ended]),
            PLANS.clear_count,
            made.values,
        )
        _remember(found.key, course)
