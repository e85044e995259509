"""lifetimes -> the least memory that any plan can need."""

from __future__ import annotations

from typing import Any

from glassgrad.engine.plan.arena import Lifetime


def peak_by_lifetime(lives: dict[Any, Lifetime]) -> int:
    """The most bytes alive at one launch."""
    steps = max((life.last for life in lives.values()), default=-1) + 1
    return max(
        (sum(x.nbytes for x in lives.values() if x.first <= i <= x.last) for i in range(steps)),
        default=0,
    )
