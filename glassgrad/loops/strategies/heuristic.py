"""Nest -> shaped Nest: the first strategy that applies, chosen by strides, reuse and sizes.

The heuristic takes microseconds. It never looks at what a kernel is for, only at its loops.
"""

from __future__ import annotations

from collections.abc import Callable

from glassgrad.ir.stages import Nest, Target
from glassgrad.loops.strategies.attention import attention_strategy
from glassgrad.loops.strategies.column_sums import column_sum_strategy
from glassgrad.loops.strategies.convolution import convolution_strategy
from glassgrad.loops.strategies.elementwise import elementwise_strategy
from glassgrad.loops.strategies.gemm import gemm_strategy
from glassgrad.loops.strategies.gpu import gpu_strategy
from glassgrad.loops.strategies.shared.epilogue import split_long_epilogue
from glassgrad.loops.strategies.shared.prefetch_split import split_for_prefetches
from glassgrad.loops.strategies.shared.recipe_builder import RecipeBuilder

Strategy = Callable[[RecipeBuilder], bool]  # False, with nothing changed, if it does not apply
STRATEGIES: tuple[Strategy, ...] = (
    gpu_strategy,
    attention_strategy,
    column_sum_strategy,
    convolution_strategy,
    gemm_strategy,
    elementwise_strategy,
)
REFINEMENTS: tuple[Callable[[RecipeBuilder], None], ...] = (
    split_for_prefetches,
    split_long_epilogue,
)


def heuristic(nest: Nest, target: Target) -> Nest:
    """The nest after the moves that suit it on this machine."""
    builder = RecipeBuilder(nest, target)
    any(strategy(builder) for strategy in STRATEGIES)
    for refine in REFINEMENTS:
        refine(builder)
    return builder.nest
