"""A nest whose code is too long -> one with fewer copies: compiling takes as long as code is long.

Strategies estimate the code that their moves generate (`MAX_UNROLLED` in
loops/strategies/recipe_builder.py), so hardly any kernel is this long. Code that does not fit the
instruction cache is not faster, either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.stages import Kernel, Nest, Program, Target

MAX_INSTRUCTIONS = 2500  # of a kernel: some 100 ms of LLVM's time
MAX_TRIES = 4
HALVED_AT_ONCE = 2  # moves, the largest first: a try is a quarter of the one before

Enter = Callable[[Nest], None]


def lowered(kernel: Kernel, nest: Nest, target: Target, enter: Enter) -> tuple[Nest, Program]:
    """The program of a nest, or of the same nest with fewer copies; and that nest.

    `enter` is told of every nest that is tried.
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

    recipe = halved(nest.recipe)
    if recipe == nest.recipe:
        return None
    try:
        return optimize(kernel, target, lambda *_: recipe)
    except IllegalMove:  # a later move needs what is no longer there
        return None


def halved(recipe: tuple[Any, ...]) -> tuple[Any, ...]:
    """The recipe with half as many copies in its largest moves; one of two or three is left out."""
    from glassgrad.loops.opts import OptOps

    made = list(recipe)
    for _ in range(HALVED_AT_ONCE):
        cuts = [
            (opt.arg, number)
            for number, opt in enumerate(made)
            if opt.op in (OptOps.UPCAST, OptOps.UNROLL) and isinstance(opt.arg, int)
        ]
        if not cuts:
            break
        amount, number = max(cuts)
        if amount > 3 and amount % 2 == 0:
            made[number] = replace(made[number], arg=amount // 2)
        else:
            del made[number]
    return tuple(made)
