"""CARRY: a maximum and sums relative to it, while blocks of what they are made of go by.

Rows of scores are exponentials relative to their maximum before they are summed, and a long row
does not fit a cache. Its blocks do: each brings a maximum, and sums relative to the maximum so far;
where that grows, what was summed before gets as much smaller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from glassgrad.base.fast_dataclasses import replace
from glassgrad.base.rounding import largest
from glassgrad.ir.ops import Before, Ops
from glassgrad.ir.reindex import reindex
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.loops.analysis.mask_bounds import limits_in_blocks
from glassgrad.loops.analysis.online_softmax import Relation, relative_sums
from glassgrad.loops.moves.strip_mine import Blocks, Kept, Places, read, wide, widened
from glassgrad.loops.nest import next_number
from glassgrad.loops.opts import IllegalMove


def carry(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """m = max of s[k]; y = sum of exp(s[k] - m)·x[k]
    ->  for 256 k at a time: b = m; m = max of b and their s; y = y·exp(b - m) + their sum
    """
    if not 0 < amount < axis.size or target.has_threads:
        raise IllegalMove(f"there are no blocks of {amount} in {axis.size}")
    family = relative_sums(nest, axis)
    blocks = make_range(next_number(nest), -(-axis.size // amount))
    done = Blocks(family.loops, family.stages, family.powers, blocks, amount).of(nest)
    maximum = done[family.maximum]
    made = _Carried(replace(nest, body=done[nest.body]), blocks, maximum, family.rows)
    inside = {maximum: read(made.now, family.rows).cast(maximum.dtype)}
    behind = {maximum: read(made.last, family.rows).cast(maximum.dtype)}
    for node, relation in family.sums.items():
        behind[done[node]] = made.sum(done[node].substitute(inside), relation)
    body = done[nest.body].substitute(behind)
    limits = limits_in_blocks(nest.limits, family.loops, blocks, amount)
    return replace(nest, body=body, limits=limits)


class _Carried:
    """Scratch with a place for every row: maxima before a block, with it, and in the end."""

    def __init__(self, nest: Nest, blocks: UOp, maximum: UOp, rows: Places) -> None:
        self.kept = Kept(nest, blocks, next_number(nest))
        self.rows = rows
        self.dtype = wide(maximum.dtype)
        self.lowest = const(-largest(maximum.dtype), self.dtype)
        self.new = self._of_rows(lambda at: self._at(maximum, at).cast(self.dtype))
        self.before = self._of_rows(lambda at: self.kept.scan(Before(Ops.MAX), read(self.new, at)))
        self.now = self._of_rows(lambda at: self._old(at).maximum(read(self.new, at)))
        self.last = self._of_rows(lambda at: self.kept.scan(Ops.MAX, read(self.new, at)), blocks)
        self.factors: dict[float, UOp] = {}

    def sum(self, node: UOp, relation: Relation) -> UOp:
        """sum of a block  ->  s = s·factor + sum of a block; what s is in the end"""
        terms = widened(node)
        factor = read(self._factor(relation.rate), relation.rows).cast(terms.dtype)
        found = self.kept.summed(Ops.MULACC, terms, factor)
        # A maximum that is no number makes every distance from it none.
        last = read(self.last, relation.rows)
        return (found + (last - last).cast(terms.dtype)).cast(node.dtype)

    def _factor(self, rate: float) -> UOp:
        """How much smaller everything gets that was relative to the maximum before."""
        if rate not in self.factors:
            self.factors[rate] = self._of_rows(
                lambda at: ((self._old(at) - read(self.now, at)) * rate).alu(Ops.EXP2)
            )
        return self.factors[rate]

    def _old(self, at: Places) -> UOp:
        """The maximum before; of nothing it is the lowest number, which has distances to others."""
        return read(self.before, at).maximum(self.lowest)

    def _at(self, maximum: UOp, at: Places) -> UOp:
        return reindex(maximum, dict(zip(self.rows, at, strict=True)))

    def _of_rows(self, value_at: Callable[[Places], UOp], *around: UOp) -> UOp:
        return self.kept.keep(self.rows, value_at, *around)
