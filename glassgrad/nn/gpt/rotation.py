"""Rotation: places as angles; pairs of a query's and a key's numbers are turned by them.

What a query and a key have in common then depends on how far apart they stand.
"""

from __future__ import annotations

from typing import NamedTuple

from glassgrad.nn.gpt.config import Config
from glassgrad.nn.gpt.rope import frequencies
from glassgrad.tensor.tensor import Tensor


class Rotation(NamedTuple):
    """The cosine and the sine of each place's angles, (…, 1, T, rotary width / 2)."""

    cos: Tensor
    sin: Tensor

    @classmethod
    def at(cls, positions: Tensor, config: Config) -> Rotation:
        """For places (T,) or (B, T)."""
        speeds = Tensor(_speeds(config), requires_grad=False)
        angles = positions.float().unsqueeze(-1) * speeds
        angles = angles.unsqueeze(-3)  # beside the heads
        cos, sin = angles.cos(), angles.sin()
        if config.rotary_factor != 1:
            cos, sin = cos * config.rotary_factor, sin * config.rotary_factor
        return cls(cos.contiguous(), sin.contiguous())  # computed once for all layers


def rotated(x: Tensor, rotation: Rotation) -> Tensor:
    """(a, b, c)  ->  (a cos - b sin, b cos + a sin, c)   for parts a, b, c of the last axis

    a and b are as wide as the cosines; mostly they are two halves, and there is no c.
    """
    cos, sin = rotation
    half = cos.shape[-1]
    a, b = x[..., :half], x[..., half : 2 * half]
    rest = [x[..., 2 * half :]] if x.shape[-1] > 2 * half else []
    return (a * cos - b * sin).cat(b * cos + a * sin, *rest, dim=-1)


def _speeds(config: Config) -> list[float]:
    """The angle between neighbours for each pair of numbers, from fast to slow."""
    speeds = frequencies(config.theta, config.rotary_width)
    if not config.divisors:
        return speeds
    return [speed / by for speed, by in zip(speeds, config.divisors, strict=True)]
