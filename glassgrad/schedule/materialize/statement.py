"""Statements: values that are materialized, their loops and what they read."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from glassgrad.base.fast_dataclasses import field, slotted
from glassgrad.ir.linear import ZERO
from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.size import Size, expression
from glassgrad.ir.uop import UOp, make_range
from glassgrad.schedule.movement import Indices, broadcast_indices, gather_indices, move

ALWAYS_MATERIALIZED = frozenset((Ops.REDUCE, Ops.SCAN, Ops.ASSIGN, Ops.CONTIGUOUS, Ops.COPY))
LEAVES = frozenset((Ops.BUFFER, Ops.CONST, Ops.IOTA, Ops.VARIABLE, Ops.BIND))
POINTWISE, GATHER, SCAN = OpGroup.POINTWISE, Ops.GATHER, Ops.SCAN


@slotted
class Statement:
    """A materialized value: for all `axes`, combine `body` over `reduced`.

    An axis is a range, or 0 where there is only one element. Ranges are numbered within the
    statement, axes first. `reads` maps other statements' nodes and buffers to the indices they are
    read with.
    """

    node: UOp
    axes: Indices
    reduced: Indices
    body: UOp
    body_indices: Indices
    is_stored: bool = False
    ops: float = 0.0  # instructions per element
    is_scatter: bool = False  # lowered by schedule/kernels/scatter.py, in a kernel of its own
    order: int = -1  # its position in program order
    # values to read from their recomputation (schedule/materialize/rematerialize.py)
    rematerialized: dict[UOp, UOp] = field(default_factory=dict)
    reads: dict[UOp, dict[Indices, None]] = field(default_factory=dict)
    contraction_flag: bool | None = None  # cache of is_contraction, which needs all reads

    def __post_init__(self) -> None:
        self.order = self.node.number if self.order < 0 else self.order

    @property
    def is_rematerialized(self) -> bool:
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
        """The axis along which a scan runs in order, if any."""
        axis: int = self.node.arg[1] if self.node.op is SCAN else -1
        return axis if axis >= 0 and self.axes[axis] is not ZERO else None

    @property
    def is_reshaped(self) -> bool:
        """True if the axes are those of a reshape's source."""
        return self.node.shape != self.body.shape and self.node.op is Ops.RESHAPE

    @property
    def is_contraction(self) -> bool:
        """True for a reduction of operands that each lack an axis of another, as in a matrix
        product.
        """
        found = self.contraction_flag
        if found is None:
            found = self.contraction_flag = bool(self.reduced) and _is_contraction(self)
        return found


def _is_contraction(statement: Statement) -> bool:
    axes = frozenset(r for r in statement.axes if r is not ZERO)
    operand_axes = {
        axes & frozenset[UOp]().union(*[index.ranges for index in at])
        for accesses in statement.reads.values()
        for at in accesses
    }
    return any(not a <= b and not b <= a for a in operand_axes for b in operand_axes)


Uses = dict[tuple[Statement, Indices], None]  # the readers of a value, and their indices


def make_statement(node: UOp) -> Statement:
    """The statement of a node that is materialized."""
    if node.op is Ops.REDUCE:
        return _reduction(node)
    body = node if node.op not in ALWAYS_MATERIALIZED or node.op is SCAN else node.src[-1]
    axes = tuple([make_axis(number, n) for number, n in enumerate(body.shape)])
    return Statement(node, axes, (), body, axes)


def reshape_statement(node: UOp) -> Statement:
    """The statement of a RESHAPE that is only stored, over the axes of its source, to share its
    loops.
    """
    body = node.src[0]
    if any(isinstance(n, Size) for n in (*node.shape, *body.shape)):
        return make_statement(node)
    axes = tuple([make_axis(number, n) for number, n in enumerate(body.shape)])
    return Statement(node, axes, (), body, axes)


def make_axis(number: int, size: int) -> UOp:
    """A range, or 0 for a single element."""
    return ZERO if size == 1 else make_range(number, expression(size))


def _reduction(node: UOp) -> Statement:
    shape, reduced_axes = node.src[0].shape, node.arg[1]
    result_axes = [axis for axis in range(len(shape)) if axis not in reduced_axes]
    ranges = {axis: make_axis(number, shape[axis]) for number, axis in enumerate(result_axes)}
    for axis in reduced_axes:
        ranges[axis] = make_axis(len(ranges), shape[axis])
    every = tuple([ranges[axis] for axis in range(len(shape))])
    axes = tuple([ranges[axis] for axis in result_axes])
    reduced = tuple([ranges[axis] for axis in reduced_axes if ranges[axis] is not ZERO])
    return Statement(node, axes, reduced, node.src[0], every)


def sources(node: UOp, indices: Indices) -> Iterator[tuple[UOp, Indices]]:
    """The sources of a node that is not materialized, and the indices they are read with."""
    if node.op in POINTWISE or node.op is SCAN:
        for source in node.src:
            yield source, broadcast_indices(indices, node.shape, source.shape)
    elif node.op is GATHER:
        yield node.src[1], indices
        yield node.src[0], gather_indices(node, indices)[0]
    elif node.op not in LEAVES:
        yield node.src[0], move(node, indices)[0]


def reduction_levels(nodes: list[UOp]) -> dict[UOp, int]:
    """The number of reductions on the longest path to each node."""
    levels: dict[UOp, int] = {}
    for node in nodes:
        below = max([levels[source] for source in node.src], default=0)
        levels[node] = below + (node.op is Ops.REDUCE)
    return levels
