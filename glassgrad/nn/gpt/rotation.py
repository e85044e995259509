"""Rotation: rotary position embeddings of queries and keys.

The product of a query and a key then depends on their distance.
"""

from __future__ import annotations

from typing import NamedTuple

from glassgrad.nn.gpt.config import Config
from glassgrad.nn.gpt.rope import frequencies
from glassgrad.tensor.tensor import Tensor


class Rotation(NamedTuple):
    """Cosines and sines of the angles of each position, (…, 1, T, rotary width / 2)."""

    cos: Tensor
    sin: Tensor

    @classmethod
    def at(cls, positions: Tensor, config: Config) -> Rotation:
        """The rotation at positions (T,) or (B, T)."""
        steps = Tensor(_frequencies(config), requires_grad=False)
        angles = positions.float().unsqueeze(-1) * steps
        angles = angles.unsqueeze(-3)  # broadcasts over the heads
        cos, sin = angles.cos(), angles.sin()
        if config.rotary_factor != 1:
            cos, sin = cos * config.rotary_factor, sin * config.rotary_factor
        return cls(cos.contiguous(), sin.contiguous())  # computed once for all layers


def rotated(x: Tensor, rotation: Rotation) -> Tensor:
    """(a, b, c)  ->  (a cos - b sin, b cos + a sin, c)   for parts a, b, c of the last axis

    a and b have the width of the cosines. Usually they are the two halves, and c is empty.
    """
    cos, sin = rotation
    half = cos.shape[-1]
    a, b = x[..., :half], x[..., half : 2 * half]
    rest = [x[..., 2 * half :]] if x.shape[-1] > 2 * half else []
    return (a * cos - b * sin).cat(b * cos + a * sin, *rest, dim=-1)


def _frequencies(config: Config) -> list[float]:
    """The angle between neighbouring positions for each pair of elements, highest first."""
    plain = frequencies(config.theta, config.rotary_width)
    if not config.divisors:
        return plain
    return [one / by for one, by in zip(plain, config.divisors, strict=True)]
