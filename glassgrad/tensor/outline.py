"""values to compute -> Outline: one walk writes their structure down, to do again what was done.

What must be computed together, in which order and by which plan depends on the structure of the
graph alone, and on which of the living tensors are made of what. So where a loop computes the same
again, its outline is the same, and the Course that the first time took is followed: nothing is
collected, rebuilt or planned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from glassgrad.base.config import BEAM, NOOPT
from glassgrad.engine.cache import PLANS, Cache
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Sizes
from glassgrad.ir.uop import UOp
from glassgrad.tensor.versions import OVERWRITTEN, current

if TYPE_CHECKING:
    from glassgrad.devices.protocol import Device
    from glassgrad.engine.pipeline import Ready
    from glassgrad.engine.plan import Plan

BUFFER, CONST, ASSIGN, COPY = Ops.BUFFER, Ops.CONST, Ops.ASSIGN, Ops.COPY
DETACH, CUSTOM, BIND = Ops.DETACH, Ops.CUSTOM, Ops.BIND
UNUSUAL = frozenset((BUFFER, CONST, ASSIGN, COPY, DETACH, CUSTOM, BIND))
Holders = Callable[[], list[UOp]]  # gives what every living tensor holds
HELD = "held"  # a node whose value is in the buffer that follows


class Outline:
    """A graph as a key: nodes in the order of a walk, a node that was met before as its number.

    `nodes` are in order of their numbers, `leaves` are the buffers among them.
    """

    __slots__ = (
        "_storages",
        "_words",
        "has_holders",
        "has_writes",
        "is_plain",
        "leaves",
        "numbers",
    )

    def __init__(self) -> None:
        self.numbers: dict[UOp, int] = {}
        self.leaves: list[UOp] = []
        self.has_writes = self.has_holders = False
        self.is_plain = not Sizes.exist  # values of variables and other devices are not written
        self._words: list[Any] = []
        self._storages: dict[int, int] = {}

    def add(self, roots: Iterable[UOp]) -> None:
        """Write down everything under these."""
        stack = list(roots)
        words, numbers = self._words, self.numbers
        words.append(len(stack))
        write, take, put = words.append, stack.pop, stack.extend
        while stack:
            node = take()
            number = numbers.get(node)
            if number is not None:
                write(number)
                continue
            numbers[node] = len(numbers)
            op = node.op
            if node.realized is not None and current(node) is not None:
                write(HELD)
                stack.append(node.realized)
            elif op in UNUSUAL:
                put(self._unusual(op, node))
            else:
                src = node.src
                write((op, node.dtype, node.arg, len(src)))
                put(src)

    def _unusual(self, op: Ops, node: UOp) -> tuple[UOp, ...]:
        """Write a node of which something else counts than for most; what it is made of."""
        if op is CONST:  # there is one node for each number, and the key keeps it
            self._words.append(node)
        elif op is BUFFER:
            view = node.arg
            storage = self._storages.setdefault(id(view.storage), len(self._storages))
            layout = (view.shape, view.strides, view.offset, storage, view.storage.device)
            self._words.append((node.dtype, layout))
            self.leaves.append(node)
        elif op is DETACH:  # if it has a name, only that it has one
            self._words.append((op, node.arg is None))
        else:
            self.has_writes |= op is ASSIGN
            self.is_plain &= op is not COPY and op is not BIND
            arg = node.arg if op is ASSIGN else len(node.src)  # gradients of CUSTOM are made
            self._words.append((op, node.dtype, arg))
        return node.src

    def add_holders(self, values: Sequence[UOp]) -> None:
        """Write down what living tensors hold. What is in memory matters if it may be written."""
        self.has_holders = True
        self.add([value for value in values if current(value) is None])
        numbers = self.numbers
        held = [numbers.get(found) for value in values if (found := current(value)) is not None]
        self._words.append(tuple([number for number in held if number is not None]))

    def key(self, kept: Iterable[UOp]) -> tuple[Any, ...]:
        """Equal where all is equal that decides on how to compute the first values."""
        marks = sorted([self.numbers[node] for node in kept])
        return (NOOPT.value, BEAM.value, tuple(marks), *self._words)

    def is_sound(self) -> bool:
        """Whether nothing of it was overwritten by a replay."""
        return not OVERWRITTEN.data or not any(leaf.arg in OVERWRITTEN for leaf in self.leaves)  # type: ignore[attr-defined]


class Found(NamedTuple):
    """An outline, its key, and what was done for the same key before, if something was."""

    outline: Outline
    key: tuple[Any, ...]
    course: Course | None

    def remember(
        self, made: Ready, ends: dict[UOp, bool], more: Sequence[UOp], ended: Sequence[UOp],
        needs_holders: bool,
    ) -> None:  # fmt: skip
        """Do the same next time: `ends` and `more` were computed, `ended` was overwritten."""
        outline, numbers = self.outline, self.outline.numbers
        if needs_holders and not outline.has_holders:
            COURSES[self.key] = WIDER
            return
        places = {leaf: place for place, leaf in enumerate(outline.leaves)}
        computed, gone = [*ends, *more], [*made.leaves, *ended]
        if not made.leaves or not (numbers.keys() >= {*computed} and places.keys() >= {*gone}):
            return  # on whichever device is the usual one, or a copy of what is overwritten
        COURSES[self.key] = Course(
            made.plan,
            made.device,
            tuple([places[leaf] for leaf in made.leaves]),
            tuple([(numbers[root], is_same) for root, is_same in ends.items()]),
            tuple([numbers[node] for node in more]),
            tuple([places[buffer] for buffer in ended]),
            PLANS.clearings,
        )


class Course(NamedTuple):
    """What was done for an outline, by the numbers of its nodes and leaves.

    `ends` are the nodes that were computed, each with whether its view is the written buffer's own;
    `ended` are the leaves whose contents are overwritten.
    """

    plan: Plan
    device: Device
    leaves: tuple[int, ...]
    ends: tuple[tuple[int, bool], ...]
    kept: tuple[int, ...]
    ended: tuple[int, ...]
    clearings: int


WIDER = "wider"  # what the living tensors hold decides as well
COURSES: Cache[Course | str] = Cache(256)


def recognised(values: Sequence[UOp], kept: frozenset[UOp], holders: Holders) -> Found | None:
    """The outline of values, and the course that was taken for the same one before.

    None if what is to be done cannot be known from an outline.
    """
    outline = Outline()
    outline.add(values)
    if outline.has_writes:
        outline.add_holders(holders())
    key = outline.key(kept)
    course = COURSES.get(key)
    if course is WIDER:
        outline.add_holders(holders())
        key = outline.key(kept)
        course = COURSES.get(key)
    if not outline.is_plain or not outline.is_sound():
        return None
    if not isinstance(course, Course) or course.clearings != PLANS.clearings:
        course = None
    return Found(outline, key, course)
