"""Nest -> Recipe: a first choice from strides, reuse and sizes; nothing here knows an op by name."""

from __future__ import annotations

from glassgrad.ir.stages import Nest, Target
from glassgrad.loops.opts import Opt


def heuristic(nest: Nest, target: Target) -> tuple[Opt, ...]:
    return ()
