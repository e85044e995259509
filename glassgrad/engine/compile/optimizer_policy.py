"""Settings -> who chooses the moves: nobody (NOOPT=1), the heuristic, or a search (BEAM=n)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from glassgrad.base.config import BEAM, NOOPT
from glassgrad.base.fast_dataclasses import field, frozen
from glassgrad.ir.stages import Nest, Target

if TYPE_CHECKING:
    from glassgrad.loops.opts import Recipe


@frozen
class Chooser:
    """Chooses a recipe; `key` tells choosers apart in caches."""

    key: str
    choose: Callable[[Nest, Target], Recipe] = field(repr=False)

    def __call__(self, nest: Nest, target: Target) -> Recipe:
        return self.choose(nest, target)


def chooser() -> Chooser:
    if NOOPT:
        return Chooser("none", _nothing)
    if BEAM:
        return Chooser(f"beam {BEAM.value}", _searched)
    return heuristic_chooser()


def heuristic_chooser() -> Chooser:
    return Chooser("heuristic", _usual)


def _nothing(nest: Nest, target: Target) -> Recipe:
    return ()


def _usual(nest: Nest, target: Target) -> Recipe:
    from glassgrad.loops.strategies.heuristic import (
        heuristic,  # where sources are on disk nobody chooses
    )

    return heuristic(nest, target)


def _searched(nest: Nest, target: Target) -> Recipe:
    from glassgrad.engine.tune.search import search  # most processes never search

    return search(nest, target, BEAM.value)
