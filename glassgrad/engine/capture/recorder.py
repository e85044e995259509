"""What a captured function did on this thread: plans that ran, and what must be checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import local
from typing import TYPE_CHECKING, Any, NamedTuple

from glassgrad.base.errors import CaptureError
from glassgrad.base.fast_dataclasses import field, mutable
from glassgrad.ir.size import VALUE_READERS, Size
from glassgrad.ir.uop import UOp

if TYPE_CHECKING:
    from glassgrad.devices.protocol import Device
    from glassgrad.engine.plan.plan import Plan
    from glassgrad.engine.plan.size_checks import SizeCheck
    from glassgrad.ir.shape import Shape
    from glassgrad.memory.storage import Storage
    from glassgrad.memory.view import View


class Run(NamedTuple):
    """A plan that ran, its input buffers, and the views that it allocated.

    `unwritten` are input storages that had never been written to, `values` the graph of the plan.
    """

    plan: Plan
    leaves: Sequence[UOp]
    allocated: list[View]
    device: Device
    unwritten: frozenset[Storage] = frozenset()
    values: Sequence[UOp] = ()

    @property
    def views(self) -> list[View]:
        return [*(leaf.arg for leaf in self.leaves), *self.allocated]

    @property
    def written(self) -> list[View]:
        """The input views that the plan wrote to."""
        views = self.views
        return [views[end.buffer] for end in self.plan.results if end.is_new_version]


@mutable
class Recorder:
    """What a thread did since recording began.

    `is_strict`: reading values is an error. `preexisting` are the ids of the tensors that existed
    before. `counters` are the buffers that hold starts of random numbers. `nodes` are all computed
    nodes, as recorded. `symbolic_results` are results whose shapes depend on variables, with those
    shapes. `grad_changes` are weak references to the tensors whose gradients changed. `size_checks`
    are the slices that fit for some values of variables only.
    """

    is_strict: bool
    preexisting: frozenset[int] = frozenset()
    runs: list[Run] = field(default_factory=list)
    counters: list[tuple[UOp, int]] = field(default_factory=list)
    nodes: set[UOp] = field(default_factory=set)
    symbolic_results: dict[View, Shape] = field(default_factory=dict)
    grad_changes: list[Any] = field(default_factory=list)
    values: Sequence[UOp] = ()  # the graph of the next run
    size_checks: list[SizeCheck] = field(default_factory=list)


class _Thread(local):
    recorder: Recorder | None = None


THREAD = _Thread()


def active_recorder() -> Recorder | None:
    """The recorder of this thread, or None."""
    return THREAD.recorder


def _refuse_value(size: Size) -> None:
    if THREAD.recorder is not None and THREAD.recorder.is_strict:
        raise CaptureError(
            f"a captured function reads the value of {size}, but replays would not read it again",
            hint="compute with the variable itself, or pass the number as an argument",
        )


VALUE_READERS.append(_refuse_value)


@contextmanager
def recording(is_strict: bool, preexisting: frozenset[int] = frozenset()) -> Iterator[Recorder]:
    """Record this thread."""
    found = THREAD.recorder = Recorder(is_strict, preexisting)
    try:
        yield found
    finally:
        THREAD.recorder = None
