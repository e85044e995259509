"""Rematerialize attention scores: a wide product is recomputed where it is needed again.

A product is wide if it is much larger than its factors: q @ k.T has an element per pair of
positions. It and the pointwise values made of it, its *scores*, feed other products:

- along rows (weights @ v): row blocks pass both products, and the scores are never stored. If much
  comes between, as between a forward pass and its gradient, the later reader recomputes them.
- along columns (weights.T @ g): one kernel uses row blocks both ways
  (schedule/fuse/attention_backward.py). Where that is not possible, the reader gets scores that are
  computed transposed, k @ q.T, so that row blocks pass both products again.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.size import Size
from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp, toposort
from glassgrad.schedule.materialize.statement import make_statement, reduction_levels, sources
from glassgrad.schedule.materialize.wide_products import (
    BLOCK_ROWS,
    can_fuse_backward,
    is_wide_result,
    ranges_of,
)
from glassgrad.schedule.movement import Indices

MIN_SCORE_BYTES = 1 << 21  # smaller scores stay in the cache
MOVEMENT = OpGroup.MOVEMENT - {Ops.GATHER}
WRITES = frozenset((Ops.ASSIGN, Ops.COPY))
MAX_LEVELS_BETWEEN = 3  # reductions between scores and what attention computes of them


class Factor(NamedTuple):
    """A factor of a product and the indices it is read with."""

    value: UOp
    indices: Indices


def rematerialize_scores(roots: Sequence[UOp], target: Target) -> list[UOp]:
    """The same values, with scores of their own for readers that are far away or need them
    transposed.
    """
    nodes = [] if target.has_threads else toposort(roots)
    wide = {n for n in nodes if n.op is Ops.REDUCE and _is_wide(n, target)}
    if not wide:
        return list(roots)
    rewriter = ScoreRematerializer(nodes, wide, target)
    for node in nodes:
        rewriter.add(node)
    return [rewriter.done[root] for root in roots]


class ScoreRematerializer:
    """The rewritten graph, and the scores in it."""

    def __init__(self, nodes: list[UOp], wide: set[UOp], target: Target) -> None:
        self.wide, self.target = wide, target
        self.levels = reduction_levels(nodes)
        self.written = _written_values(nodes)
        self.done: dict[UOp, UOp] = {}
        self.level_of: dict[UOp, int] = {}  # scores -> reduction level of their latest wide product
        self._recomputed: dict[UOp, UOp] = {}
        self._transposed: dict[UOp, UOp] = {}

    def add(self, node: UOp) -> None:
        """Rewrite a node whose sources have been rewritten."""
        if node in self.wide:
            self.level_of[node] = self.levels[node]
        elif node.op in OpGroup.POINTWISE:
            parts = [s for s in node.src if s in self.level_of and s.shape == node.shape]
            if parts:
                self.level_of[node] = max(self.level_of[part] for part in parts)
        src = tuple([self._source(node, source) for source in node.src])
        same = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
        if node.op is Ops.REDUCE and node not in self.wide:
            same = self._sum_over_rows(node) or same
        if same is not node and same.origin is None:
            same.origin = node.origin
        self.done[node] = same

    def _source(self, node: UOp, source: UOp) -> UOp:
        """The source of a node; recomputed if its product is too many reductions before the
        reader.
        """
        if node in self.level_of and source in self.level_of and node not in self.wide:
            if self.level_of[node] - self.level_of[source] > MAX_LEVELS_BETWEEN:
                return self._recompute(source, self._recomputed, is_transposed=False)
        return self.done[source]

    def _recompute(self, node: UOp, copies: dict[UOp, UOp], is_transposed: bool) -> UOp:
        """Scores computed once more from their product's terms, or transposed."""
        if node in copies:
            return copies[node]
        if node in self.wide:
            terms = self.done[node].src[0]
            new_terms = _transposed_terms(node, terms) if is_transposed else _distinct_copy(terms)
            copy = UOp(Ops.REDUCE, node.dtype, (new_terms,), node.arg)
        elif node in self.level_of:
            src = [self._recompute(source, copies, is_transposed) for source in node.src]
            copy = UOp(node.op, node.dtype, tuple(src), node.arg)
        else:
            return _transposed(self.done[node]) if is_transposed else self.done[node]
        copy.origin, copies[node] = node.origin, copy
        return copy

    def _sum_over_rows(self, reduce: UOp) -> UOp | None:
        """The product over transposed scores, or over scores left to the fused backward pass, if it
        sums scores over their rows.
        """
        factors = _factors(reduce)
        statement = make_statement(reduce)
        if len(factors) != 2 or len(statement.reduced) != 1:
            return None
        for (value, indices), (other, _) in (factors, factors[::-1]):
            if value in self.level_of and indices[-2] is statement.reduced[0]:
                if reduce not in self.written and self._can_fuse_backward(value):
                    scores, self.has_fused_backward = self._scores_for(value, other), True
                else:
                    scores = _transposed(
                        self._recompute(value, self._transposed, is_transposed=True)
                    )
                product = _with_source(reduce, value, scores, self.done)
                is_transposed = len(reduce.shape) > 1 and indices[-1] is statement.axes[-1]
                return _swap_result_axes(product) if is_transposed else product
        return None

    def _can_fuse_backward(self, scores: UOp) -> bool:
        *around, rows, _ = scores.shape
        return can_fuse_backward(prod(around), rows, self.target)

    def _scores_for(self, scores: UOp, other: UOp) -> UOp:
        """The scores, recomputed if the other factor is computed long after them."""
        if self.levels[other] - self.level_of[scores] > MAX_LEVELS_BETWEEN:
            return self._recompute(scores, self._recomputed, is_transposed=False)
        return self.done[scores]


def _written_values(nodes: list[UOp]) -> set[UOp]:
    """What an ASSIGN or COPY writes, and what that is a pointwise function of. These statements
    are not fused with the scores.
    """
    found: set[UOp] = set()
    for node in reversed(nodes):
        is_rewritten = node in found and (node.op in OpGroup.POINTWISE or node.op in MOVEMENT)
        if is_rewritten or node.op in WRITES:
            found.update(node.src)
    return found


def _is_wide(node: UOp, target: Target) -> bool:
    """True if this is a wide product with row blocks for all cores."""
    shape = node.shape
    if node.arg[0] is not Ops.ADD or len(shape) < 2:
        return False
    if prod(shape) * node.dtype.itemsize < MIN_SCORE_BYTES:
        return False
    if any(isinstance(n, Size) for n in shape):
        return False
    if prod(shape[:-2]) < target.cores and min(shape[-2:]) < BLOCK_ROWS * 2 * target.cores:
        return False  # too few row blocks for all cores
    factors, statement = _factors(node), make_statement(node)
    have = [ranges_of(indices) for _, indices in factors]
    if len(factors) != 2 or not is_wide_result(statement, have):
        return False
    *_, rows, columns = statement.axes
    return any(rows in a - b and columns in b - a for a, b in (have, have[::-1]))


def _factors(reduce: UOp) -> list[Factor]:
    """The factors of a sum of products, behind all movement."""
    statement = make_statement(reduce)
    if statement.body.op is not Ops.MUL:
        return []
    found = list(sources(statement.body, statement.body_indices))
    for number, (value, indices) in enumerate(found):
        while value.op in MOVEMENT:
            ((value, indices),) = sources(value, indices)
        found[number] = value, indices
    return [Factor(*pair) for pair in found]


def _with_source(reduce: UOp, value: UOp, new: UOp, done: dict[UOp, UOp]) -> UOp:
    """The product with one factor's value replaced, behind its movement."""
    copies: dict[UOp, UOp] = {value: new}

    def write(node: UOp) -> UOp:
        if node not in copies:
            is_moved = node.op in MOVEMENT or node is reduce or node is reduce.src[0]
            src = tuple([write(source) for source in node.src]) if is_moved else ()
            copies[node] = UOp(node.op, node.dtype, src, node.arg) if is_moved else done[node]
        return copies[node]

    return write(reduce)


def _distinct_copy(value: UOp) -> UOp:
    """A distinct node for the same value."""
    return UOp(Ops.RESHAPE, value.dtype, (value,), value.shape)


def _transposed(value: UOp) -> UOp:
    """Swap the last two axes; missing axes count as leading ones, as in broadcasting."""
    if not value.shape:
        return value
    if len(value.shape) == 1:
        value = UOp(Ops.RESHAPE, value.dtype, (value,), (1, *value.shape))
    axes = list(range(len(value.shape)))
    return UOp(Ops.PERMUTE, value.dtype, (value,), (*axes[:-2], axes[-1], axes[-2]))


def _swap_result_axes(product: UOp) -> UOp:
    """The same product, computed with its result axes swapped."""
    terms = _transposed_terms(product, product.src[0])
    return _transposed(UOp(Ops.REDUCE, product.dtype, (terms,), product.arg))


def _transposed_terms(reduce: UOp, terms: UOp) -> UOp:
    """The terms of a sum with those axes swapped that are the last two of the result."""
    axes = list(range(len(terms.shape)))
    *_, rows, columns = [axis for axis in axes if axis not in reduce.arg[1]]
    axes[rows], axes[columns] = axes[columns], axes[rows]
    return UOp(Ops.PERMUTE, terms.dtype, (terms,), tuple(axes))
