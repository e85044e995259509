"""A wide product is computed again where it is needed again: attention's backward keeps no weights.

A product is wide if it is much larger than its two factors, like the scores of attention: q @ k.T
has an element for each pair of places. It and what is made of it element by element, its *plane*,
are used by other products:

- with the grain, summing along rows (weights @ v): rows go through both products in blocks, and
  the plane is never in memory. If something long comes between, as between a forward pass and its
  gradient, it would have to be: the later reader gets a plane of its own.
- against the grain, summing along columns (weights.T @ g): one kernel uses blocks of rows both
  ways (schedule/fuse/attention_backward.py). Where that cannot be, the reader gets a plane that is
  computed transposed, k @ q.T, so that blocks of its rows go through both.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.size import Size
from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp, toposort
from glassgrad.schedule.fuse.attention_backward import is_swept
from glassgrad.schedule.fuse.row_blocks import MOST_ROWS, is_wide, ranges_of
from glassgrad.schedule.kernels.movement import Indices
from glassgrad.schedule.materialize.statement import make_statement, reduction_levels, sources

FEW_BYTES = 1 << 21  # stay in a cache
MOVED = OpGroup.MOVEMENT - {Ops.GATHER}
BETWEEN = 3  # reductions from scores to what attention makes of them


class Factor(NamedTuple):
    """A value that a product reads, and where."""

    value: UOp
    indices: Indices


def compute_again(
    roots: Sequence[UOp], target: Target, sweeps: bool = True
) -> tuple[list[UOp], bool]:
    """The same values, with planes of their own for products that are far apart or turned; and
    whether some are left to be swept.
    """
    nodes = [] if target.has_threads else toposort(roots)
    wide = {n for n in nodes if n.op is Ops.REDUCE and _has_plane(n, target)}
    if not wide:
        return list(roots), False
    planes = Planes(wide, reduction_levels(nodes), target if sweeps else None)
    for node in nodes:
        planes.add(node)
    return [planes.done[root] for root in roots], planes.has_swept


class Planes:
    """The graph as it is written anew, and the planes in it."""

    def __init__(self, wide: set[UOp], levels: dict[UOp, int], sweeper: Target | None) -> None:
        self.wide, self.levels = wide, levels
        self.sweeper = sweeper  # the machine whose kernels may use a plane both ways
        self.has_swept = False
        self.done: dict[UOp, UOp] = {}
        self.newest: dict[UOp, int] = {}  # node of a plane -> level of its latest wide product
        self._later: dict[UOp, UOp] = {}
        self._turned: dict[UOp, UOp] = {}

    def add(self, node: UOp) -> None:
        """Write a node whose sources have been written."""
        if node in self.wide:
            self.newest[node] = self.levels[node]
        elif node.op in OpGroup.POINTWISE:
            parts = [s for s in node.src if s in self.newest and s.shape == node.shape]
            if parts:
                self.newest[node] = max(self.newest[part] for part in parts)
        src = tuple([self._source(node, source) for source in node.src])
        same = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
        if node.op is Ops.REDUCE and node not in self.wide:
            same = self._against_the_grain(node) or same
        if same is not node and same.origin is None:
            same.origin = node.origin
        self.done[node] = same

    def _source(self, node: UOp, source: UOp) -> UOp:
        """What a node reads: a plane that is made again, if its product was computed long ago."""
        if node in self.newest and source in self.newest and node not in self.wide:
            if self.newest[node] - self.newest[source] > BETWEEN:
                return self._copy(source, self._later, turn=False)
        return self.done[source]

    def _copy(self, node: UOp, made: dict[UOp, UOp], turn: bool) -> UOp:
        """A plane once more, from its product on; turned: its last two axes have changed places."""
        if node in made:
            return made[node]
        if node in self.wide:
            terms = self.done[node].src[0]
            again = _turned_terms(node, terms) if turn else _same(terms)
            copy = UOp(Ops.REDUCE, node.dtype, (again,), node.arg)
        elif node in self.newest:
            src = [self._copy(source, made, turn) for source in node.src]
            copy = UOp(node.op, node.dtype, tuple(src), node.arg)
        else:
            return _turned(self.done[node]) if turn else self.done[node]
        copy.origin, made[node] = node.origin, copy
        return copy

    def _against_the_grain(self, reduce: UOp) -> UOp | None:
        """The product with its plane turned, or left to be swept, if it sums along the columns of
        one.
        """
        factors = _factors(reduce)
        statement = make_statement(reduce)
        if len(factors) != 2 or len(statement.reduced) != 1:
            return None
        for (value, indices), (other, _) in (factors, factors[::-1]):
            if value in self.newest and indices[-2] is statement.reduced[0]:
                if self._is_swept(value):
                    plane, self.has_swept = self._near(value, other), True
                else:
                    plane = _turned(self._copy(value, self._turned, turn=True))
                product = _with_source(reduce, value, plane, self.done)
                return _rows_first(product) if indices[-1] is statement.axes[-1] else product
        return None

    def _is_swept(self, plane: UOp) -> bool:
        *around, rows, _ = plane.shape
        return self.sweeper is not None and is_swept(prod(around), rows, self.sweeper)

    def _near(self, plane: UOp, other: UOp) -> UOp:
        """A plane as it is when the other factor is known: made again, if that is long after."""
        if self.levels[other] - self.newest[plane] > BETWEEN:
            return self._copy(plane, self._later, turn=False)
        return self.done[plane]


def _has_plane(node: UOp, target: Target) -> bool:
    """Is this a wide product, with blocks of rows for all cores?"""
    shape = node.shape
    if node.arg[0] is not Ops.ADD or len(shape) < 2:
        return False
    if prod(shape) * node.dtype.itemsize < FEW_BYTES:
        return False
    if any(isinstance(n, Size) for n in shape):
        return False
    if prod(shape[:-2]) < target.cores and min(shape[-2:]) < MOST_ROWS * 2 * target.cores:
        return False  # too few blocks of rows
    factors, statement = _factors(node), make_statement(node)
    have = [ranges_of(indices) for _, indices in factors]
    if len(factors) != 2 or not is_wide(statement, have):
        return False
    *_, rows, columns = statement.axes
    return any(rows in a - b and columns in b - a for a, b in (have, have[::-1]))


def _factors(reduce: UOp) -> list[Factor]:
    """What a sum of products multiplies, behind all movement."""
    statement = make_statement(reduce)
    if statement.body.op is not Ops.MUL:
        return []
    found = list(sources(statement.body, statement.body_indices))
    for number, (value, indices) in enumerate(found):
        while value.op in MOVED:
            ((value, indices),) = sources(value, indices)
        found[number] = value, indices
    return [Factor(*pair) for pair in found]


def _with_source(reduce: UOp, value: UOp, new: UOp, done: dict[UOp, UOp]) -> UOp:
    """The product with another value behind the movement of one of its factors."""
    made: dict[UOp, UOp] = {value: new}

    def write(node: UOp) -> UOp:
        if node not in made:
            is_moved = node.op in MOVED or node is reduce or node is reduce.src[0]
            src = tuple([write(source) for source in node.src]) if is_moved else ()
            made[node] = UOp(node.op, node.dtype, src, node.arg) if is_moved else done[node]
        return made[node]

    return write(reduce)


def _same(value: UOp) -> UOp:
    """A node of its own for the same value."""
    return UOp(Ops.RESHAPE, value.dtype, (value,), value.shape)


def _turned(value: UOp) -> UOp:
    """The last two axes change places; fewer axes stand for ones in front, as in broadcasting."""
    if not value.shape:
        return value
    if len(value.shape) == 1:
        value = UOp(Ops.RESHAPE, value.dtype, (value,), (1, *value.shape))
    axes = list(range(len(value.shape)))
    return UOp(Ops.PERMUTE, value.dtype, (value,), (*axes[:-2], axes[-1], axes[-2]))


def _rows_first(product: UOp) -> UOp:
    """The same product, with columns last while it is computed."""
    terms = _turned_terms(product, product.src[0])
    return _turned(UOp(Ops.REDUCE, product.dtype, (terms,), product.arg))


def _turned_terms(reduce: UOp, terms: UOp) -> UOp:
    """What is summed, with those axes turned that are the last two of the sum."""
    axes = list(range(len(terms.shape)))
    *_, rows, columns = [axis for axis in axes if axis not in reduce.arg[1]]
    axes[rows], axes[columns] = axes[columns], axes[rows]
    return UOp(Ops.PERMUTE, terms.dtype, (terms,), tuple(axes))
