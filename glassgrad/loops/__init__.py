"""Kernel -> Nest: give every axis a loop, then make the moves that make it fast."""

from __future__ import annotations

from glassgrad.ir.coverage import check_coverage
from glassgrad.ir.ops import AxisKind
from glassgrad.ir.stages import Choose, Kernel, Nest, Target
from glassgrad.loops.analysis.mask_bounds import apply_mask_bounds
from glassgrad.loops.moves.coalesce import coalesce_loops
from glassgrad.loops.moves.flatten_buffers import flatten_buffer_axes
from glassgrad.loops.moves.lanes import choose_lanes
from glassgrad.loops.moves.table import apply_moves
from glassgrad.loops.names import name_nest
from glassgrad.loops.nest import change_kind, is_scanned
from glassgrad.loops.strategies.heuristic import heuristic


def optimize(kernel: Kernel, target: Target, choose: Choose = heuristic) -> Nest:
    """A nest that computes the same, in a better order."""
    nest = Nest(kernel.body, kernel.outer, kernel.rewrites)
    nest = flatten_buffer_axes(coalesce_loops(nest))
    nest = assign_grid_axes(nest, target)
    nest = apply_moves(nest, choose(nest, target), target)
    nest = finish(nest, target)
    check_coverage(kernel.body, nest.body, nest.rewrites)
    return nest


def unoptimized(kernel: Kernel, target: Target) -> Nest:
    """The loops as they were scheduled: nothing is moved, merged or skipped."""
    nest = Nest(kernel.body, kernel.outer, kernel.rewrites)
    return name_nest(assign_grid_axes(nest, target))


def finish(nest: Nest, target: Target) -> Nest:
    """What is left to do once all moves are made."""
    return name_nest(apply_mask_bounds(choose_lanes(nest, target)))


def assign_grid_axes(nest: Nest, target: Target) -> Nest:
    """On a machine with threads, outer loops are coordinates of the launch grid."""
    if target.has_threads:
        free = [axis for axis in nest.outer if not is_scanned(nest, axis)]
        for axis in free[-len(target.grid_sizes) :]:
            nest = change_kind(nest, axis, AxisKind.GLOBAL)
    return nest
