"""Lifetimes -> offsets in one arena: temporaries that are not live at the same time share bytes."""

from __future__ import annotations

from typing import Any

from glassgrad.base.fast_dataclasses import frozen

ALIGNMENT = 64


@frozen
class Lifetime:
    """The first and last launch that use a temporary, and its size."""

    first: int
    last: int
    nbytes: int


def assign_offsets(lifetimes: dict[Any, Lifetime]) -> tuple[dict[Any, int], int]:
    """First fit, largest first: the lowest offset that no overlapping lifetime occupies."""
    placed: list[tuple[Lifetime, int]] = []
    offsets: dict[Any, int] = {}
    for node, lifetime in sorted(lifetimes.items(), key=lambda item: -item[1].nbytes):
        size = -(-lifetime.nbytes // ALIGNMENT) * ALIGNMENT
        overlapping = sorted(
            (start, start + -(-other.nbytes // ALIGNMENT) * ALIGNMENT)
            for other, start in placed
            if other.first <= lifetime.last and lifetime.first <= other.last
        )
        at = 0
        for start, stop in overlapping:
            if start - at >= size:
                break
            at = max(at, stop)
        offsets[node] = at
        placed.append((lifetime, at))
    total = max((offsets[n] + lifetimes[n].nbytes for n in lifetimes), default=0)
    return {node: offsets[node] for node in lifetimes}, total
