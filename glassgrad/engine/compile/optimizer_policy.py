"""Settings -> the policy for loop moves: none (NOOPT=1), the heuristic, or a search (BEAM=n)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glassgrad.base.config import BEAM, NOOPT
from glassgrad.base.fast_dataclasses import field, frozen
from glassgrad.ir.stages import Choose, Nest, Target

if TYPE_CHECKING:
    from glassgrad.loops.opts import Recipe


@frozen
class OptimizerPolicy:
    """Chooses a recipe for a nest; `key` distinguishes policies in caches."""

    key: str
    choose: Choose = field(repr=False)

    def __call__(self, nest: Nest, target: Target) -> Nest | Recipe:
        return self.choose(nest, target)


def current_policy() -> OptimizerPolicy:
    if NOOPT:
        return OptimizerPolicy("none", _empty_recipe)
    if BEAM:
        return OptimizerPolicy(f"beam {BEAM.value}", _searched_recipe)
    return heuristic_policy()


def heuristic_policy() -> OptimizerPolicy:
    return OptimizerPolicy("heuristic", _heuristic_nest)


def _empty_recipe(nest: Nest, target: Target) -> Recipe:
    return ()


def _heuristic_nest(nest: Nest, target: Target) -> Nest:
    # Not needed where sources are on disk.
    from glassgrad.loops.strategies.heuristic import heuristic

    return heuristic(nest, target)


def _searched_recipe(nest: Nest, target: Target) -> Recipe:
    from glassgrad.engine.tune.search import search  # most processes never search

    return search(nest, target, BEAM.value)
