"""Strategy for all other nests: vectors along memory, and an outer loop divided among cores."""

from __future__ import annotations

from glassgrad.loops.strategies.shared.cores import divide_outer_loop
from glassgrad.loops.strategies.shared.recipe_builder import RecipeBuilder
from glassgrad.loops.strategies.shared.vectorize import vectorize


def elementwise_strategy(builder: RecipeBuilder) -> bool:
    """Vectorize every statement and reduction; suits any nest on a machine with cores."""
    vectorize(builder, set())
    divide_outer_loop(builder)
    return True
