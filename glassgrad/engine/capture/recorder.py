"""runs of a thread -> Recorder: what a captured function did while it was watched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import local
from typing import TYPE_CHECKING, Any, NamedTuple

from glassgrad.base.errors import CaptureError
from glassgrad.base.fast_dataclasses import field, mutable
from glassgrad.ir.size import LOOKERS, Size
from glassgrad.ir.uop import UOp

if TYPE_CHECKING:
    from glassgrad.devices.protocol import Device
    from glassgrad.engine.plan.plan import Plan
    from glassgrad.engine.plan.size_checks import SizeCheck
    from glassgrad.ir.shape import Shape
    from glassgrad.memory.storage import Storage
    from glassgrad.memory.view import View


class Run(NamedTuple):
    """A plan that was run, the buffers it was given, and the views it made.

    `blank` are given storages that nobody had written to before, `values` the graph of the plan.
    """

    plan: Plan
    leaves: Sequence[UOp]
    made: list[View]
    device: Device
    blank: frozenset[Storage] = frozenset()
    values: Sequence[UOp] = ()

    @property
    def views(self) -> list[View]:
        return [*(leaf.arg for leaf in self.leaves), *self.made]

    @property
    def written(self) -> list[View]:
        """The given views that the plan wrote into."""
        views = self.views
        return [views[end.place] for end in self.plan.results if end.is_renewed]


@mutable
class Recorder:
    """What a thread did since it was turned on.

    `is_strict`: values may not be looked at. `counters` are the buffers that say where random
    numbers begin. `sized` are the results whose shapes variables decide, with those shapes.
    `nodes` are all that was computed, as it was written. `touched` are the tensors whose gradients
    were set or added to. `older` are the ids of the tensors that were there before. `size_checks`
    are the cuts that fit for some values of variables only.
    """

    is_strict: bool
    older: frozenset[int] = frozenset()
    runs: list[Run] = field(default_factory=list)
    counters: list[tuple[UOp, int]] = field(default_factory=list)
    nodes: set[UOp] = field(default_factory=set)
    sized: dict[View, Shape] = field(default_factory=dict)
    touched: list[Any] = field(default_factory=list)
    values: Sequence[UOp] = ()  # the graph that is about to run
    size_checks: list[SizeCheck] = field(default_factory=list)


class _Thread(local):
    recorder: Recorder | None = None


THREAD = _Thread()


def recorder() -> Recorder | None:
    """Who watches this thread."""
    return THREAD.recorder


def _refuse_value(size: Size) -> None:
    if THREAD.recorder is not None and THREAD.recorder.is_strict:
        raise CaptureError(
            f"a captured function looks at the value of {size}: replays would not look again",
            hint="compute with the variable itself, or pass the number as an argument",
        )


LOOKERS.append(_refuse_value)


@contextmanager
def recording(is_strict: bool, older: frozenset[int] = frozenset()) -> Iterator[Recorder]:
    """Watch this thread."""
    made = THREAD.recorder = Recorder(is_strict, older)
    try:
        yield made
    finally:
        THREAD.recorder = None
