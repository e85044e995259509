"""Passes: a stage as a table of named functions, each announced with its input and output.

PASSES = (
    Pass("coalesce loops", lambda nest, _: coalesce_loops(nest)),
    Pass("apply moves", apply_chosen_moves),
)
nest = run_passes(PASSES, nest, request)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, Generic, NamedTuple, TypeVar

from glassgrad.base.events import LISTENERS, PassDone, announce

V = TypeVar("V")
C = TypeVar("C")


class Pass(NamedTuple, Generic[V, C]):
    """One step of a stage: its name in DEBUG=5 and on the page, and a function of the state and of
    the stage's input, such as the Target.
    """

    name: str
    run: Callable[[V, C], V]


def run_passes(
    passes: Sequence[Pass[V, C]],
    value: V,
    context: C,
    shown: Callable[[V], Any] = lambda value: value,
) -> V:
    """The state after all passes, in order; `shown` gives what listeners see of it."""
    for step in passes:
        if not LISTENERS:
            value = step.run(value, context)
            continue
        before, start = shown(value), perf_counter()
        value = step.run(value, context)
        seconds = perf_counter() - start
        announce(PassDone(step.name, before, shown(value), seconds))
    return value
