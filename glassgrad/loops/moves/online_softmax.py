"""ONLINE_SOFTMAX: strip-mine the axis of a maximum and of the sums that are scaled by it.

A long row of scores does not fit a cache, but its blocks do. Each block updates a running maximum
and adds its exponentials relative to it; when the maximum grows, the sums so far are rescaled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from glassgrad.base.fast_dataclasses import replace
from glassgrad.base.rounding import largest
from glassgrad.ir.ops import Exclusive, Ops
from glassgrad.ir.reindex import reindex
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.loops.analysis.mask_bounds import strip_mine_mask_bounds
from glassgrad.loops.analysis.online_softmax import Dependence, find_online_softmax
from glassgrad.loops.moves.strip_mine import (
    CarriedScratch,
    Indices,
    StripMine,
    accumulator_dtype,
    load_at,
    with_wide_accumulator,
)
from glassgrad.loops.nest import next_axis_number
from glassgrad.loops.opts import IllegalMove


def online_softmax(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """m = max of s[k]; y = sum of exp(s[k] - m)·x[k]
    ->  for blocks of 256 k: b = m; m = max of b and their s; y = y·exp(b - m) + their sum
    """
    if not 0 < amount < axis.size or target.has_threads:
        raise IllegalMove(
            f"a block of {amount} does not fit an axis of {axis.size}, or the target has threads"
        )
    found = find_online_softmax(nest, axis)
    blocks = make_range(next_axis_number(nest), -(-axis.size // amount))
    done = StripMine(found.loops, found.stages, found.exponentials, blocks, amount).apply(nest)
    maximum = done[found.maximum]
    running = _RunningSoftmax(replace(nest, body=done[nest.body]), blocks, maximum, found.rows)
    inside = {maximum: load_at(running.current, found.rows).cast(maximum.dtype)}
    final = {maximum: load_at(running.final_maximum, found.rows).cast(maximum.dtype)}
    for node, dependence in found.sums.items():
        final[done[node]] = running.sum(done[node].substitute(inside), dependence)
    body = done[nest.body].substitute(final)
    mask_bounds = strip_mine_mask_bounds(nest.mask_bounds, found.loops, blocks, amount)
    return replace(nest, body=body, mask_bounds=mask_bounds)


class _RunningSoftmax:
    """Scratch per row: the maximum of the current block, before it, including it, and in the
    end.
    """

    def __init__(self, nest: Nest, blocks: UOp, maximum: UOp, rows: Indices) -> None:
        self.scratch = CarriedScratch(nest, blocks, next_axis_number(nest))
        self.rows = rows
        self.dtype = accumulator_dtype(maximum.dtype)
        self.lowest = const(-largest(maximum.dtype), self.dtype)
        self.block_maximum = self._stage_rows(
            lambda at: self._maximum_at(maximum, at).cast(self.dtype)
        )
        self.previous = self._stage_rows(
            lambda at: self.scratch.scan(Exclusive(Ops.MAX), load_at(self.block_maximum, at))
        )
        self.current = self._stage_rows(
            lambda at: self._previous_at(at).maximum(load_at(self.block_maximum, at))
        )
        self.final_maximum = self._stage_rows(
            lambda at: self.scratch.scan(Ops.MAX, load_at(self.block_maximum, at)), blocks
        )
        self.factors: dict[float, UOp] = {}

    def sum(self, node: UOp, dependence: Dependence) -> UOp:
        """sum of a block  ->  s = s·factor + sum of a block; the value of s after the last block"""
        terms = with_wide_accumulator(node)
        factor = load_at(self._factor(dependence.rate), dependence.rows).cast(terms.dtype)
        found = self.scratch.accumulate(Ops.MULACC, terms, factor)
        # A NaN maximum makes every sum NaN.
        final_maximum = load_at(self.final_maximum, dependence.rows)
        return (found + (final_maximum - final_maximum).cast(terms.dtype)).cast(node.dtype)

    def _factor(self, rate: float) -> UOp:
        """exp(previous maximum - current maximum): rescales the sums so far."""
        if rate not in self.factors:
            self.factors[rate] = self._stage_rows(
                lambda at: ((self._previous_at(at) - load_at(self.current, at)) * rate).alu(
                    Ops.EXP2
                )
            )
        return self.factors[rate]

    def _previous_at(self, at: Indices) -> UOp:
        """The previous maximum; initially the lowest finite number, so that differences are
        defined.
        """
        return load_at(self.previous, at).maximum(self.lowest)

    def _maximum_at(self, maximum: UOp, at: Indices) -> UOp:
        return reindex(maximum, dict(zip(self.rows, at, strict=True)))

    def _stage_rows(self, value_at: Callable[[Indices], UOp], *around: UOp) -> UOp:
        return self.scratch.stage(self.rows, value_at, *around)
