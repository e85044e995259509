"""Events of the pipeline -> listeners, such as DEBUG, the visualiser and tests.

Announcing costs nothing without listeners: callers write

    if LISTENERS:
        announce(StageEntered("schedule", graph))

and LISTENERS is empty unless somebody listens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from glassgrad.base.fast_dataclasses import frozen


@frozen
class StageEntered:
    """A stage of the pipeline begins with a value."""

    stage: str
    value: Any


@frozen
class RuleFired:
    """A rule rewrote a node."""

    rewrite: str  # the name of the rule table
    rule: str
    before: Any
    after: Any


@frozen
class PassDone:
    """A pass over a graph, a nest or a program has finished."""

    name: str
    before: Any
    after: Any
    seconds: float


@frozen
class GraphPlanned:
    """A graph was divided into kernels, and these were compiled."""

    schedule: Any
    launches: Any  # one per kernel
    device: str
    seconds: float


@frozen
class KernelCompiled:
    """A kernel was compiled; `cached` if its code was on disk."""

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
    """A device allocated memory."""

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
    """Call every listener, in the order of registration."""
    for listener in tuple(LISTENERS):
        listener(event)


@contextmanager
def listen(listener: Listener) -> Iterator[Listener]:
    """Inside of this context, `listener` receives every event of every thread.

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
        # By identity and from the end: a listener may be equal to another, or registered twice.
        indices = [index for index, other in enumerate(LISTENERS) if other is listener]
        del LISTENERS[indices[-1]]
