"""lifetimes -> offsets in one arena: values that never meet share their bytes."""

from __future__ import annotations

from typing import Any

from glassgrad.base.fast_dataclasses import frozen

ALIGNMENT = 64


@frozen
class Life:
    """From which launch to which a temporary is needed, and how many bytes it has."""

    first: int
    last: int
    nbytes: int


def assign_offsets(lives: dict[Any, Life]) -> tuple[dict[Any, int], int]:
    """A place in one arena for each: largest first, each as low as those it meets allow."""
    placed: list[tuple[Life, int]] = []
    offsets: dict[Any, int] = {}
    for node, life in sorted(lives.items(), key=lambda item: -item[1].nbytes):
        size = -(-life.nbytes // ALIGNMENT) * ALIGNMENT
        met = sorted(
            (start, start + -(-other.nbytes // ALIGNMENT) * ALIGNMENT)
            for other, start in placed
            if other.first <= life.last and life.first <= other.last
        )
        at = 0
        for start, stop in met:
            if start - at >= size:
                break
            at = max(at, stop)
        offsets[node] = at
        placed.append((life, at))
    total = max((offsets[n] + lives[n].nbytes for n in lives), default=0)
    return {node: offsets[node] for node in lives}, total
