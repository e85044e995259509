"""Fusion group -> Kernel: statements as STOREs and STAGEs under ranges numbered in the kernel."""

from __future__ import annotations

from glassgrad.base.dtype import dtypes
from glassgrad.base.fast_dataclasses import field, mutable, replace
from glassgrad.ir.linear import ZERO
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.proof import guard_unproved
from glassgrad.ir.stages import ERROR_CELLS, Check, Kernel, Param
from glassgrad.ir.traverse import transform_nodes
from glassgrad.ir.uop import UOp, make_range
from glassgrad.memory.view import contiguous_strides
from glassgrad.schedule.fuse.groups import FusionGroup
from glassgrad.schedule.kernels.expression import Expressions
from glassgrad.schedule.kernels.factor import factor_out
from glassgrad.schedule.kernels.reduction_elimination import eliminate_reduction
from glassgrad.schedule.materialize.statement import Statement
from glassgrad.schedule.movement import Indices, destination, reshape_indices


def base_buffer(node: UOp) -> UOp:
    """The node whose buffer holds this value: an ASSIGN writes into its target's."""
    while node.op is Ops.ASSIGN:
        node = node.src[0]
    return node


@mutable
class KernelBuilder:
    """The state of a kernel under construction."""

    group: FusionGroup
    stored: set[Statement]
    outer: Indices
    next_number: int
    slots: dict[UOp, UOp] = field(default_factory=dict)
    # statement -> the expression that other statements read
    values: dict[UOp, UOp] = field(default_factory=dict)
    inner_axes: dict[UOp, tuple[int, ...]] = field(default_factory=dict)
    loaded: set[UOp] = field(default_factory=set)
    # statement -> the statements it depends on
    dependencies: dict[UOp, set[UOp]] = field(default_factory=dict)
    reductions: list[tuple[Indices, list[UOp]]] = field(default_factory=list)
    # CHECK of the graph -> its number in this kernel
    checks: dict[UOp, int] = field(default_factory=dict)

    def param(self, node: UOp) -> UOp:
        """The kernel argument that holds this value."""
        base = base_buffer(node)
        if base not in self.slots:
            shape = tuple([int(n) for n in base.shape])  # memory is laid out for the largest sizes
            strides = base.arg.strides if base.op is Ops.BUFFER else contiguous_strides(shape)
            arg = Param(len(self.slots), shape, strides)
            self.slots[base] = UOp(Ops.PARAM, base.dtype, (), arg)
        return self.slots[base]

    def error_cell(self, check: UOp) -> tuple[int, int]:
        """The slot that the kernel's CHECKs report to, and the number of this one."""
        if ERROR_CELLS not in self.slots:
            self.slots[ERROR_CELLS] = UOp(
                Ops.PARAM, dtypes.int64, (), Param(len(self.slots), (), ())
            )
        slot: int = self.slots[ERROR_CELLS].arg.slot
        return slot, self.checks.setdefault(check, len(self.checks))

    def new_ranges(self, sizes: Indices, kind: AxisKind) -> Indices:
        ranges = [make_range(self.next_number + i, r.src[0], kind) for i, r in enumerate(sizes)]
        self.next_number += len(ranges)
        return tuple(ranges)

    def reduced_ranges(self, statement: Statement) -> Indices:
        """Ranges to reduce over: those of an earlier reduction, if neither depends on the other.

        Reductions over the same ranges are computed in one loop.
        """
        node, sizes = statement.node, [r.src[0] for r in statement.reduced]
        dependencies = self.dependencies[node] = {node}
        for read in statement.reads:
            dependencies |= self.dependencies.get(read, set())
        for ranges, users in self.reductions:
            if [r.src[0] for r in ranges] == sizes and dependencies.isdisjoint(users):
                users.append(node)
                return ranges
        ranges = self.new_ranges(statement.reduced, AxisKind.REDUCE)
        if ranges:
            self.reductions.append((ranges, [node]))
        return ranges

    def read(self, node: UOp, indices: Indices, gate: UOp | None) -> UOp:
        """A load of a value from outside of the kernel or of another statement."""
        if node not in self.values:
            self.loaded.add(base_buffer(node))
            return self.param(node).index(*indices, gate=gate).load()
        value, inner = self.values[node], self.inner_axes[node]
        if value.op is Ops.STORE:  # it is read back from its buffer
            self.loaded.add(base_buffer(node))
        if not inner:
            zero = value.const_like(0)
            return value if gate is None else gate.where(value, zero)
        if value.op is Ops.STAGE:
            indices = tuple([indices[axis] for axis in inner])
        return UOp(Ops.INDEX, node.dtype, (value, *indices, *([gate] if gate else []))).load()


def build_kernel(group: FusionGroup, stored: set[Statement]) -> tuple[Kernel, tuple[UOp, ...]]:
    """The kernel, and the nodes whose buffers its slots hold."""
    sizes = tuple([next(s.axes[axis] for s, axis in loop.items()) for loop in group.outer])
    outer = tuple([make_range(i, r.src[0]) for i, r in enumerate(sizes)])
    builder = KernelBuilder(group, stored, outer, len(outer))
    for statement in group.statements:
        if statement in stored:
            builder.param(statement.node)
    written = {base_buffer(s.node) for s in stored if s.node.op is Ops.ASSIGN}
    stores = [
        line for s in group.statements if (line := _add_statement(builder, s, written)) is not None
    ]
    stores = _live_stores(stores)
    body = factor_out(guard_unproved(UOp(Ops.SINK, dtypes.void, tuple(stores))))
    body, slots = _drop_unused_params(body, tuple(builder.slots))
    checks = tuple([Check(node.arg, node.origin, node.number) for node in builder.checks])
    return Kernel(body, outer, bool(written & builder.loaded), checks), slots


def _live_stores(statements: list[UOp]) -> list[UOp]:
    """x = a; x = b  ->  x = b, if x is not read between.

    Two equal stores with another between them are one node, so they cannot be ordered.
    """
    last = {statement.src[0]: statement for statement in statements if statement.op is Ops.STORE}
    if len(last) == len(statements):
        return statements
    live: list[UOp] = []
    needed: set[UOp] = set()
    for statement in reversed(statements):
        final = last.get(statement.src[0], statement)
        if statement is final or final.src[2:] != statement.src[2:] or statement in needed:
            live.append(statement)
            needed.update(UOp(Ops.SINK, dtypes.void, statement.src).toposort())
    return live[::-1]


def _drop_unused_params(body: UOp, slots: tuple[UOp, ...]) -> tuple[UOp, tuple[UOp, ...]]:
    """Renumber arguments if simplification removed all uses of one."""
    nodes = body.toposort()
    used = {n.arg.slot for n in nodes if n.op is Ops.PARAM}
    used |= {n.arg[1] for n in nodes if n.op is Ops.CHECK}
    if len(used) == len(slots):
        return body, slots
    number = {slot: i for i, slot in enumerate(sorted(used))}

    def renumber(node: UOp, rebuilt: UOp) -> UOp:
        if node.op is Ops.PARAM:
            return rebuilt.replace(arg=replace(node.arg, slot=number[node.arg.slot]))
        if node.op is Ops.CHECK:
            return rebuilt.replace(arg=(node.arg[0], number[node.arg[1]], *node.arg[2:]))
        return rebuilt

    done = transform_nodes(nodes, renumber)
    return done[body], tuple([slots[slot] for slot in sorted(used)])


def _add_statement(builder: KernelBuilder, statement: Statement, written: set[UOp]) -> UOp | None:
    """Build a statement; returns the node to place in the kernel's order, if any.

    Those are stores, and values computed from contents that a later store overwrites.
    """
    axes_of_outer = {
        loop[statement]: builder.outer[i] for i, loop in enumerate(builder.group.outer)
    }
    inner = tuple(
        [a for a, r in enumerate(statement.axes) if r is not ZERO and a not in axes_of_outer]
    )
    fresh = builder.new_ranges(tuple([statement.axes[a] for a in inner]), AxisKind.LOOP)
    axes_of_outer |= dict(zip(inner, fresh, strict=True))
    axes = tuple([axes_of_outer.get(axis, ZERO) for axis in range(len(statement.axes))])
    value = _value(builder, statement, axes)
    node = statement.node
    loops = tuple(sorted(fresh, key=lambda r: inner[fresh.index(r)] == statement.scanned))
    builder.inner_axes[node] = inner
    if statement not in builder.stored:
        is_ordered = any(base_buffer(read) in written for read in statement.reads)
        if inner or is_ordered:
            shape = tuple([r.size for r in fresh])
            value = UOp(Ops.STAGE, node.dtype, (value, *fresh, *loops), shape)
        builder.values[node] = value
        return value if is_ordered else None
    indices = reshape_indices(node, axes) if statement.is_reshaped else destination(node, axes)
    target = builder.param(node).index(*indices)
    store = UOp(Ops.STORE, dtypes.void, (target, value, *builder.outer, *loops))
    builder.values[node] = store if inner else value
    return store


def _value(builder: KernelBuilder, statement: Statement, axes: Indices) -> UOp:
    reduced = builder.reduced_ranges(statement)
    ranges = dict(zip(statement.axes + statement.reduced, axes + reduced, strict=True))
    ranges[ZERO] = ZERO
    indices = tuple([ranges[index] for index in statement.body_indices])
    rematerialized = statement.rematerialized
    known = {s.node for s in builder.group.statements}.union(statement.reads, rematerialized)
    expressions = Expressions(
        known.__contains__,
        lambda node, at, gate: builder.read(rematerialized.get(node, node), at, gate),
        builder.error_cell,
    )
    is_inlined = statement.body is statement.node
    value = expressions.build(statement.body, indices, is_inlined=is_inlined)
    if reduced:
        value = UOp(Ops.REDUCE, statement.node.dtype, (value, *reduced), statement.node.arg[0])
    return eliminate_reduction(value)
