"""Passes: a stage as a list of named functions, each announced with its input and its output.

PASSES = (
Pass("coalesce loops", coalesce_loops),
Pass("flatten buffer axes", flatten_buffer_axes),
)
nest = run_passes(PASSES, nest, target)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, Generic, NamedTuple, TypeVar

from glassgrad.base.events import LISTENERS, PassDone, announce

V = TypeVar("V")
C = TypeVar("C")


class Pass(NamedTuple, Generic[V, C]):
    """One step of a stage: the name that DEBUG=5 and the page show, and a function of the value
    and of what the whole stage is given, such as the Target.
    """

    name: str
    run: Callable[[V, C], V]


def run_passes(
    passes: Sequence[Pass[V, C]],
    value: V,
    context: C,
    shown: Callable[[V], Any] = lambda value: value,
) -> V:
    """The value after all passes, in order; `shown` is what listeners see of it."""
    for step in passes:
        if not LISTENERS:
            value = step.run(value, context)
            continue
        before, start = shown(value), perf_counter()
        value = step.run(value, context)
        seconds = perf_counter() - start
        announce(PassDone(step.name, before, shown(value), seconds))
    return value
