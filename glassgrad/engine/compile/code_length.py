"""A nest with too much code -> one with fewer unroll copies, as compile time grows with code.

Strategies estimate the code that their moves generate (`MAX_UNROLLED_INSTRUCTIONS` in
loops/strategies/shared/recipe_builder.py), so hardly any kernel exceeds the limit. Code that
exceeds the instruction cache is slower, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.stages import Kernel, Nest, Program, Target

MAX_INSTRUCTIONS = 2500  # per kernel: some 100 ms of LLVM's time
MAX_TRIES = 4
MOVES_HALVED_PER_TRY = 2  # the largest first: each try generates a quarter of the code

Enter = Callable[[Nest], None]


def lower_within_limit(
    kernel: Kernel, nest: Nest, target: Target, enter: Enter
) -> tuple[Nest, Program]:
    """The nest, or one with fewer unroll copies if its code is too long; and its program.

    `enter` is called with every nest that is tried.
    """
    from glassgrad.lower import lower
    from glassgrad.lower.scope import TooManyInstructionsError

    for _ in range(MAX_TRIES):
        enter(nest)
        try:
            return nest, lower(nest, target, MAX_INSTRUCTIONS)
        except TooManyInstructionsError:
            shorter = _with_fewer_copies(kernel, nest, target)
            if shorter is None:
                break
            nest = shorter
    return nest, lower(nest, target)


def _with_fewer_copies(kernel: Kernel, nest: Nest, target: Target) -> Nest | None:
    from glassgrad.loops import optimize
    from glassgrad.loops.opts import IllegalMove

    recipe = halve_unrolling(nest.recipe)
    if recipe == nest.recipe:
        return None
    try:
        return optimize(kernel, target, lambda *_: recipe)
    except IllegalMove:  # a later move depends on one that was removed
        return None


def halve_unrolling(recipe: tuple[Any, ...]) -> tuple[Any, ...]:
    """The recipe with half the unrolling in its largest moves; factors of 2 and 3 are removed."""
    from glassgrad.loops.opts import OptOps

    shorter = list(recipe)
    for _ in range(MOVES_HALVED_PER_TRY):
        cuts = [
            (opt.arg, number)
            for number, opt in enumerate(shorter)
            if opt.op in (OptOps.UPCAST, OptOps.UNROLL) and isinstance(opt.arg, int)
        ]
        if not cuts:
            break
        amount, number = max(cuts)
        if amount > 3 and amount % 2 == 0:
            shorter[number] = replace(shorter[number], arg=amount // 2)
        else:
            del shorter[number]
    return tuple(shorter)
