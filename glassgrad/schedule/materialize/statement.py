"""Statements: values that are materialised, their loops, and what they read."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from glassgrad.base.fast_dataclasses import field, slotted
from glassgrad.ir.linear import ZERO
from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.size import Size, expression
from glassgrad.ir.uop import UOp, make_range
from glassgrad.schedule.kernels.movement import Indices, gathered, move, stretch

ALWAYS_KEPT = frozenset((Ops.REDUCE, Ops.SCAN, Ops.ASSIGN, Ops.CONTIGUOUS, Ops.COPY))
LEAVES = frozenset((Ops.BUFFER, Ops.CONST, Ops.IOTA, Ops.VARIABLE, Ops.BIND))
POINTWISE, GATHER, SCAN = OpGroup.POINTWISE, Ops.GATHER, Ops.SCAN


@slotted
class Statement:
    """A value that is materialised: for all `axes`, combine `body` over `reduced`.

    An axis is a range, or 0 where there is only one element. Ranges are numbered within the
    statement, axes first. `reads` says at which indices other statements and buffers are read.
    """

    node: UOp
    axes: Indices
    reduced: Indices
    body: UOp
    body_indices: Indices
    is_stored: bool = False
    ops: float = 0.0  # arithmetic for one element
    is_scatter: bool = False  # see schedule/kernels/scatter.py: it has a kernel of its own
    order: int = -1  # its place in the program
    twins: dict[UOp, UOp] = field(
        default_factory=dict
    )  # see schedule/materialize/rematerialize.py: read these instead
    reads: dict[UOp, dict[Indices, None]] = field(default_factory=dict)
    contracts: bool | None = None  # see is_contraction: found when all reads are known

    def __post_init__(self) -> None:
        self.order = self.node.number if self.order < 0 else self.order

    @property
    def is_twin(self) -> bool:
        return self.order != self.node.number

    @property
    def numel(self) -> int:
        return prod(self.body.shape) if not self.reduced else prod(self.node.shape)

    @property
    def loops(self) -> int:
        """How many times the body is evaluated."""
        return self.numel * prod(axis.size for axis in self.reduced)

    @property
    def scanned(self) -> int | None:
        """The axis along which it runs in order, each element made of the one before."""
        axis: int = self.node.arg[1] if self.node.op is SCAN else -1
        return axis if axis >= 0 and self.axes[axis] is not ZERO else None

    @property
    def is_reshaped(self) -> bool:
        """Are its axes those of what it reshapes, not its own?"""
        return self.node.shape != self.body.shape and self.node.op is Ops.RESHAPE

    @property
    def is_contraction(self) -> bool:
        """A reduction of operands that each lack an axis another has, as in a matrix product."""
        found = self.contracts
        if found is None:
            found = self.contracts = bool(self.reduced) and _contracts(self)
        return found


def _contracts(statement: Statement) -> bool:
    axes = frozenset(r for r in statement.axes if r is not ZERO)
    have = {
        axes & frozenset[UOp]().union(*[index.ranges for index in at])
        for places in statement.reads.values()
        for at in places
    }
    return any(not a <= b and not b <= a for a in have for b in have)


Uses = dict[tuple[Statement, Indices], None]  # who reads a value, and where


def make_statement(node: UOp) -> Statement:
    """What is computed, and over which ranges, for a node that is materialised."""
    if node.op is Ops.REDUCE:
        return _reduction(node)
    body = node if node.op not in ALWAYS_KEPT or node.op is SCAN else node.src[-1]
    axes = tuple([make_axis(number, n) for number, n in enumerate(body.shape)])
    return Statement(node, axes, (), body, axes)


def as_before(node: UOp) -> Statement:
    """A RESHAPE that is only stored: over the axes of what is reshaped, which others share."""
    body = node.src[0]
    if any(isinstance(n, Size) for n in (*node.shape, *body.shape)):
        return make_statement(node)
    axes = tuple([make_axis(number, n) for number, n in enumerate(body.shape)])
    return Statement(node, axes, (), body, axes)


def make_axis(number: int, size: int) -> UOp:
    """A range, unless there is only one element."""
    return ZERO if size == 1 else make_range(number, expression(size))


def _reduction(node: UOp) -> Statement:
    shape, reduced_axes = node.src[0].shape, node.arg[1]
    kept = [axis for axis in range(len(shape)) if axis not in reduced_axes]
    ranges = {axis: make_axis(number, shape[axis]) for number, axis in enumerate(kept)}
    for axis in reduced_axes:
        ranges[axis] = make_axis(len(ranges), shape[axis])
    every = tuple([ranges[axis] for axis in range(len(shape))])
    axes = tuple([ranges[axis] for axis in kept])
    reduced = tuple([ranges[axis] for axis in reduced_axes if ranges[axis] is not ZERO])
    return Statement(node, axes, reduced, node.src[0], every)


def sources(node: UOp, indices: Indices) -> Iterator[tuple[UOp, Indices]]:
    """Where a node that is not materialised reads its sources."""
    if node.op in POINTWISE or node.op is SCAN:
        for source in node.src:
            yield source, stretch(indices, node.shape, source.shape)
    elif node.op is GATHER:
        yield node.src[1], indices
        yield node.src[0], gathered(node, indices)[0]
    elif node.op not in LEAVES:
        yield node.src[0], move(node, indices)[0]


def reduction_levels(nodes: list[UOp]) -> dict[UOp, int]:
    """How many reductions lie one behind the other up to each node."""
    levels: dict[UOp, int] = {}
    for node in nodes:
        below = max([levels[source] for source in node.src], default=0)
        levels[node] = below + (node.op is Ops.REDUCE)
    return levels
