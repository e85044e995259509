"""Settings -> who chooses the moves: nobody (NOOPT=1), the heuristic, or a search (BEAM=n)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from glassgrad.base.config import NOOPT
from glassgrad.ir.stages import Nest, Target
from glassgrad.loops.heuristic import heuristic


@dataclass(frozen=True)
class Chooser:
    """Chooses a recipe; `key` tells choosers apart in caches."""

    key: str

    def __call__(self, nest: Nest, target: Target) -> tuple[Any, ...]:
        return () if self.key == "none" else heuristic(nest, target)


def chooser() -> Chooser:
    return Chooser("none" if NOOPT else "heuristic")
