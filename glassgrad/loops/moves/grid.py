"""Outer loops -> coordinates of a launch grid, on machines with threads."""

from __future__ import annotations

from glassgrad.ir.ops import AxisKind
from glassgrad.ir.stages import Nest, Target
from glassgrad.loops.nest import change_kind, is_scanned


def assign_grid_axes(nest: Nest, target: Target) -> Nest:
    """for i: for j: …  ->  one thread group per (i, j); scanned axes stay loops"""
    if target.has_threads:
        free = [axis for axis in nest.outer if not is_scanned(nest, axis)]
        for axis in free[-len(target.grid_sizes) :]:
            nest = change_kind(nest, axis, AxisKind.GLOBAL)
    return nest
