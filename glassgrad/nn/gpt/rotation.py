"""Rotation: places as angles; pairs of a query's and a key's numbers are turned by them.

What a query and a key have in common then depends on how far apart they stand.
"""

from __future__ import annotations

from math import pi
from typing import NamedTuple

from glassgrad.nn.gpt.config import Config
from glassgrad.tensor.tensor import Tensor


class Rotation(NamedTuple):
    """The cosine and the sine of each place's angles, (…, 1, T, D / 2)."""

    cos: Tensor
    sin: Tensor

    @classmethod
    def at(cls, positions: Tensor, config: Config) -> Rotation:
        """For places (T,) or (B, T)."""
        speeds = Tensor(_speeds(config), requires_grad=False)
        angles = positions.float().unsqueeze(-1) * speeds
        angles = angles.unsqueeze(-3)  # beside the heads
        # Computed once for all layers.
        return cls(angles.cos().contiguous(), angles.sin().contiguous())


def rotated(x: Tensor, rotation: Rotation) -> Tensor:
    """(a, b)  ->  (a cos - b sin, b cos + a sin)   for the two halves a, b of the last axis"""
    a, b = x.chunk(2, -1)
    cos, sin = rotation
    return (a * cos - b * sin).cat(b * cos + a * sin, dim=-1)


def _speeds(config: Config) -> list[float]:
    """The angle between neighbours for each pair of numbers, from fast to slow."""
    width = config.head_width
    speeds = [config.theta ** (-2 * pair / width) for pair in range(width // 2)]
    if config.stretch is None:
        return speeds
    factor, low, high, context = config.stretch

    def stretched(speed: float) -> float:
        """Rotations that a context sees less than `low` times are slowed down by `factor`."""
        turns = context * speed / (2 * pi)
        share = min(max((turns - low) / (high - low), 0.0), 1.0)
        return speed * (share + (1 - share) / factor)

    return [stretched(speed) for speed in speeds]
