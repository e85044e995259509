"""what happens on the road -> listeners: how DEBUG, the visualiser and tests look on.

Nobody pays for it while nobody listens: a caller writes

    if LISTENERS:
        announce(StageEntered("schedule", graph))

and LISTENERS is a list that is empty then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from glassgrad.base.fast_dataclasses import frozen


@frozen
class StageEntered:
    """A stage of the road starts work on a value."""

    stage: str
    value: Any


@frozen
class RuleFired:
    """A rule of a pass turned one node into another."""

    rewrite: str  # the name of the pass
    rule: str
    before: Any
    after: Any


@frozen
class PassDone:
    """A pass over a graph, a nest or a program is finished."""

    name: str
    before: Any
    after: Any
    seconds: float


@frozen
class GraphPlanned:
    """A graph was cut into kernels, and these became code that can be launched."""

    schedule: Any
    launches: Any  # one per kernel
    device: str
    seconds: float


@frozen
class KernelCompiled:
    """A kernel became machine code; `cached` if it was found on disk."""

    name: str
    device: str
    source: Any
    seconds: float
    cached: bool = False


@frozen
class KernelLaunched:
    """A kernel ran."""

    name: str
    device: str
    seconds: float
    operations: int
    bytes: int
    launch: Any = None


@frozen
class BufferAllocated:
    """A device handed out memory."""

    device: str
    nbytes: int


Event = (
    StageEntered
    | RuleFired
    | PassDone
    | GraphPlanned
    | KernelCompiled
    | KernelLaunched
    | BufferAllocated
)
Listener = Callable[[Event], None]

LISTENERS: list[Listener] = []


def announce(event: Event) -> None:
    """Tell every listener, in the order in which they came."""
    for listener in tuple(LISTENERS):
        listener(event)


@contextmanager
def listen(listener: Listener) -> Iterator[Listener]:
    """While this is open, `listener` is called with every event of every thread.

    >>> seen = []
    >>> with listen(seen.append):
    ...     announce(BufferAllocated("CPU", 64))
    >>> seen
    [BufferAllocated(device='CPU', nbytes=64)]
    """
    LISTENERS.append(listener)
    try:
        yield listener
    finally:
        # By identity and from the end: another listener may be equal, or the same one.
        places = [place for place, other in enumerate(LISTENERS) if other is listener]
        del LISTENERS[places[-1]]
