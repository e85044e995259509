"""A random.Random -> recipes: a chooser that makes whatever legal moves it comes upon."""

from __future__ import annotations

from math import prod
from random import Random
from typing import Any

from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp
from glassgrad.loops.moves.table import apply_opt
from glassgrad.loops.nest import axes
from glassgrad.loops.opts import IllegalMove, Opt, OptOps

AMOUNTS = (2, 3, 4, 5, 8, 16)
MOST_TRIES = 20
MAX_COPIES = 128  # unrolling more than this only takes long to compile


class RandomChooser:
    """Chooses moves at random and remembers the recipes; `key` tells it apart in caches."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.key = f"random {seed}"
        self.recipes: list[tuple[Opt, ...]] = []

    def __call__(self, nest: Nest, target: Target) -> tuple[Opt, ...]:
        wanted = self.rng.randrange(7)
        for _ in range(MOST_TRIES):
            is_enough = len(nest.recipe) >= wanted or self._copies(nest) > MAX_COPIES
            if is_enough or not axes(nest):
                break
            try:
                nest = apply_opt(nest, self._move(axes(nest)), target)
            except IllegalMove:
                continue
        self.recipes.append(nest.recipe)
        return nest.recipe

    def _move(self, found: list[UOp]) -> Opt:
        op, axis = self.rng.choice(list(OptOps)), self.rng.choice(found)
        arg: Any = self.rng.choice(AMOUNTS)
        if op in (OptOps.SWAP, OptOps.COALESCE):
            arg = self.rng.choice(found).axis
        elif op in (OptOps.PACK, OptOps.CACHE_READ, OptOps.DOT):
            arg = self.rng.randrange(5)
            if op is OptOps.PACK and self.rng.random() < 0.3:
                arg = (arg, self.rng.choice(found).axis)
        elif op is OptOps.K_BLOCK:
            arg = (self.rng.choice(found).axis, self.rng.choice((1, *AMOUNTS)))
        elif op is OptOps.CORE:
            arg = None
        return Opt(op, axis.axis, arg)

    @staticmethod
    def _copies(nest: Nest) -> int:
        return prod(r.size for r in axes(nest) if r.kind.is_unrolled)
