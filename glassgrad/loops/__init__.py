"""Kernel -> Nest: give every axis a loop, then apply the moves that make it fast.

PASSES lists the passes in order.
"""

from __future__ import annotations

from typing import NamedTuple

from glassgrad.ir.coverage import check_coverage
from glassgrad.ir.pass_runner import Pass, run_passes
from glassgrad.ir.stages import Choose, Kernel, Nest, Target
from glassgrad.ir.uop import UOp
from glassgrad.loops.analysis.mask_bounds import apply_mask_bounds
from glassgrad.loops.moves.coalesce import coalesce_loops
from glassgrad.loops.moves.flatten_buffers import flatten_buffer_axes
from glassgrad.loops.moves.grid import assign_grid_axes
from glassgrad.loops.moves.lanes import choose_lanes
from glassgrad.loops.moves.table import apply_moves
from glassgrad.loops.names import name_nest
from glassgrad.loops.strategies.heuristic import heuristic


class Request(NamedTuple):
    """What `optimize` is given."""

    kernel: Kernel
    target: Target
    choose: Choose


def _apply_chosen_moves(nest: Nest, request: Request) -> Nest:
    """The nest after the chosen recipe; a chooser that has applied it already returns the nest."""
    chosen = request.choose(nest, request.target)
    return chosen if isinstance(chosen, Nest) else apply_moves(nest, chosen, request.target)


def _check_coverage(nest: Nest, request: Request) -> Nest:
    check_coverage(request.kernel.body, nest.body, nest.may_alias)
    return nest


ASSIGN_GRID = Pass[Nest, Request](
    "assign grid axes", lambda nest, request: assign_grid_axes(nest, request.target)
)
NAME = Pass[Nest, Request]("name", lambda nest, _: name_nest(nest))
FINISH: tuple[Pass[Nest, Request], ...] = (  # once all moves have been applied
    Pass("choose lanes", lambda nest, request: choose_lanes(nest, request.target)),
    Pass("apply mask bounds", lambda nest, _: apply_mask_bounds(nest)),
    NAME,
)
PASSES: tuple[Pass[Nest, Request], ...] = (
    Pass("coalesce loops", lambda nest, _: coalesce_loops(nest)),
    Pass("flatten buffer axes", lambda nest, _: flatten_buffer_axes(nest)),
    ASSIGN_GRID,
    Pass("apply moves", _apply_chosen_moves),
    *FINISH,
    Pass("check coverage", _check_coverage),
)


def optimize(kernel: Kernel, target: Target, choose: Choose = heuristic) -> Nest:
    """A nest that computes the same as the kernel, in a better order."""
    return _run(PASSES, _nest(kernel), Request(kernel, target, choose))


def unoptimized(kernel: Kernel, target: Target) -> Nest:
    """The loops as scheduled: nothing is moved, coalesced or skipped."""
    return _run((ASSIGN_GRID, NAME), _nest(kernel), Request(kernel, target, heuristic))


def finish(nest: Nest, target: Target) -> Nest:
    """The passes that follow the moves, for a nest with any recipe."""
    kernel = Kernel(nest.body, nest.outer, nest.may_alias)
    return _run(FINISH, nest, Request(kernel, target, heuristic))


def _nest(kernel: Kernel) -> Nest:
    return Nest(kernel.body, kernel.outer, kernel.may_alias)


def _run(passes: tuple[Pass[Nest, Request], ...], nest: Nest, request: Request) -> Nest:
    return run_passes(passes, nest, request, _body)


def _body(nest: Nest) -> UOp:
    return nest.body
