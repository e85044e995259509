"""Events -> Recording: graphs, their kernels and the times of these, as plain data.

Graphs are converted at once and not kept, so that recording keeps no tensor's memory alive.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from glassgrad.base.events import Event, GraphPlanned, KernelLaunched, listen
from glassgrad.base.fast_dataclasses import field, mutable
from glassgrad.engine.cache.graph_keys import PLANS
from glassgrad.ir.stages import Executable, Kernel
from glassgrad.viz.graph import Lines, graph_of

MAX_GRAPHS = 100  # later ones are only counted


@mutable
class Code:
    """A compiled kernel and its runs."""

    number: int
    kernel: Kernel
    executable: Executable
    device: str
    operations: int
    bytes: int
    runs: int = 0
    seconds: float = 0.0
    fastest: float = 0.0

    def ran(self, seconds: float) -> None:
        self.fastest = seconds if not self.runs else min(self.fastest, seconds)
        self.runs += 1
        self.seconds += seconds


@mutable
class Recording:
    """What a program computed while it was recorded."""

    codes: dict[int, Code] = field(default_factory=dict)  # id of the executable -> code
    graphs: list[dict[str, Any]] = field(default_factory=list)
    lines: Lines = field(default_factory=Lines)
    left_out: int = 0  # number of graphs beyond MAX_GRAPHS

    def notice(self, event: Event) -> None:
        if isinstance(event, GraphPlanned) and event.schedule.kernels:
            self._planned(event)
        elif isinstance(event, KernelLaunched) and event.launch is not None:
            code = self.codes.get(id(event.launch.executable))
            if code is not None:
                code.ran(event.seconds)

    def _planned(self, event: GraphPlanned) -> None:
        if len(self.graphs) >= MAX_GRAPHS:
            self.left_out += 1
            return
        numbers = []
        for kernel, launch in zip(event.schedule.kernels, event.launches, strict=True):
            known = self.codes.get(id(launch.executable))
            if known is None:
                number = len(self.codes)
                code = Code(number, kernel, launch.executable, event.device, launch.operations,
                            launch.bytes)  # fmt: skip
                known = self.codes[id(launch.executable)] = code
            numbers.append(known.number)
        self.graphs.append(graph_of(event.schedule, numbers, self.lines, event.seconds))


@contextmanager
def record() -> Iterator[Recording]:
    """Record what is computed. Clears cached plans, whose graphs would not be announced."""
    PLANS.clear()
    recording = Recording()
    with listen(recording.notice):
        yield recording
