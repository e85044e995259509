"""Nest, cost -> Recipe: the best few of the recipes met so far are changed while it helps.

How good one is only the machine can say: `cost` gives seconds, infinity where it does not work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf, isfinite

from glassgrad.base.fast_dataclasses import field, mutable
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp
from glassgrad.loops.opts import Recipe
from glassgrad.loops.search.candidates import attempt, neighbours

BETTER = 0.98  # what a round must reach of the time before, or it was the last
Cost = Callable[[Nest, float], float]  # a nest, and the seconds of the best one


@mutable
class Beam:
    """The recipes that were tried, and what each took."""

    start: Nest
    target: Target
    cost: Cost
    is_over: Callable[[], bool]
    tried: dict[tuple[UOp, tuple[UOp, ...]], float] = field(default_factory=dict)
    ranking: list[tuple[float, Nest]] = field(default_factory=list)  # the best first

    @property
    def seconds(self) -> float:
        """What the best one takes."""
        return self.ranking[0][0] if self.ranking else inf

    def measure(self, nests: Iterator[Nest]) -> None:
        """Try those that were not tried before, as long as there is time."""
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
        """Try what is one change away from each of the best."""
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
    """The fastest recipe that is found from these ones on; the first if nothing works."""
    search = Beam(start, target, cost, is_over)
    given = [attempt(start, recipe, target) for recipe in recipes]
    search.measure(nest for nest in given if nest is not None)
    before = inf
    while search.ranking and search.seconds < before * BETTER and not is_over():
        before = search.seconds
        search.widen(width)
    return search.ranking[0][1].recipe if search.ranking else recipes[0]
