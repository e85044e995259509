"""Nest, cost -> Recipe: beam search over recipes, as long as a round gains enough.

`cost` measures a nest on the machine: seconds, or infinity where it fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf, isfinite

from glassgrad.base.fast_dataclasses import field, mutable
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp
from glassgrad.loops.opts import Recipe
from glassgrad.loops.search.candidates import neighbours, try_recipe

REQUIRED_RATIO = 0.98  # a round must reach this fraction of the previous time, or the search ends
Cost = Callable[[Nest, float], float]  # (nest, seconds of the best so far) -> seconds


@mutable
class Beam:
    """The nests tried so far, and the seconds of each."""

    start: Nest
    target: Target
    cost: Cost
    is_over: Callable[[], bool]
    tried: dict[tuple[UOp, tuple[UOp, ...]], float] = field(default_factory=dict)
    ranking: list[tuple[float, Nest]] = field(default_factory=list)  # fastest first

    @property
    def seconds(self) -> float:
        """The time of the fastest nest."""
        return self.ranking[0][0] if self.ranking else inf

    def measure(self, nests: Iterator[Nest]) -> None:
        """Measure nests not measured before, until the time is up."""
        for nest in nests:
            key = (nest.body, nest.outer)
            if key in self.tried:
                continue
            if self.is_over():
                return
            seconds = self.tried[key] = self.cost(nest, self.seconds)
            if isfinite(seconds):
                self.ranking.append((seconds, nest))
        self.ranking.sort(key=lambda found: found[0])

    def widen(self, width: int) -> None:
        """Measure all neighbours of the `width` fastest nests."""
        for _, nest in self.ranking[:width]:
            self.measure(neighbours(self.start, nest.recipe, self.target))


def beam(
    start: Nest,
    target: Target,
    width: int,
    cost: Cost,
    recipes: Sequence[Recipe],
    is_over: Callable[[], bool] = lambda: False,
) -> Recipe:
    """The fastest recipe found from `recipes` on; the first of them if none works."""
    search = Beam(start, target, cost, is_over)
    given = [try_recipe(start, recipe, target) for recipe in recipes]
    search.measure(nest for nest in given if nest is not None)
    before = inf
    while search.ranking and search.seconds < before * REQUIRED_RATIO and not is_over():
        before = search.seconds
        search.widen(width)
    return search.ranking[0][1].recipe if search.ranking else recipes[0]
