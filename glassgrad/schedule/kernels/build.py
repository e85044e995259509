"""Cluster -> Kernel: statements as stores and stages under ranges numbered in the kernel."""

from __future__ import annotations

from glassgrad.base.dtype import dtypes
from glassgrad.base.fast_dataclasses import field, mutable, replace
from glassgrad.ir.linear import ZERO
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.proof import guard_unproved
from glassgrad.ir.stages import CELLS, Check, Kernel, Param
from glassgrad.ir.uop import UOp, make_range
from glassgrad.memory.view import contiguous_strides
from glassgrad.schedule.fuse.groups import Cluster
from glassgrad.schedule.kernels.expression import Expressions
from glassgrad.schedule.kernels.factor import factor_out
from glassgrad.schedule.kernels.movement import Indices, destination, reshaped
from glassgrad.schedule.kernels.reduction_elimination import collapse
from glassgrad.schedule.materialize.statement import Statement


def place(node: UOp) -> UOp:
    """The value whose buffer holds this one: an ASSIGN writes into its target's."""
    while node.op is Ops.ASSIGN:
        node = node.src[0]
    return node


@mutable
class Draft:
    """A kernel in the making."""

    cluster: Cluster
    stored: set[Statement]
    outer: Indices
    next_number: int
    slots: dict[UOp, UOp] = field(default_factory=dict)
    values: dict[UOp, UOp] = field(default_factory=dict)  # what cluster-mates read of a statement
    inner_axes: dict[UOp, tuple[int, ...]] = field(default_factory=dict)
    loaded: set[UOp] = field(default_factory=set)
    below: dict[UOp, set[UOp]] = field(default_factory=dict)  # statement -> those it is made of
    reductions: list[tuple[Indices, list[UOp]]] = field(default_factory=list)
    checks: dict[UOp, int] = field(default_factory=dict)  # CHECK of the graph -> its number here

    def param(self, node: UOp) -> UOp:
        """The kernel's argument that holds this value."""
        base = place(node)
        if base not in self.slots:
            shape = tuple([int(n) for n in base.shape])  # room for the largest sizes
            strides = base.arg.strides if base.op is Ops.BUFFER else contiguous_strides(shape)
            arg = Param(len(self.slots), shape, strides)
            self.slots[base] = UOp(Ops.PARAM, base.dtype, (), arg)
        return self.slots[base]

    def cell_of(self, check: UOp) -> tuple[int, int]:
        """The slot that all CHECKs of the kernel report to, and the place of this one there."""
        if CELLS not in self.slots:
            self.slots[CELLS] = UOp(Ops.PARAM, dtypes.int64, (), Param(len(self.slots), (), ()))
        slot: int = self.slots[CELLS].arg.slot
        return slot, self.checks.setdefault(check, len(self.checks))

    def new_ranges(self, sizes: Indices, kind: AxisKind) -> Indices:
        made = [make_range(self.next_number + i, r.src[0], kind) for i, r in enumerate(sizes)]
        self.next_number += len(made)
        return tuple(made)

    def reduced_ranges(self, statement: Statement) -> Indices:
        """Ranges to reduce over: those of an earlier reduction where neither waits for the other.

        Reductions that share their ranges are computed in one loop.
        """
        node, sizes = statement.node, [r.src[0] for r in statement.reduced]
        below = self.below[node] = {node}
        for read in statement.reads:
            below |= self.below.get(read, set())
        for ranges, users in self.reductions:
            if [r.src[0] for r in ranges] == sizes and below.isdisjoint(users):
                users.append(node)
                return ranges
        made = self.new_ranges(statement.reduced, AxisKind.REDUCE)
        if made:
            self.reductions.append((made, [node]))
        return made

    def read(self, node: UOp, indices: Indices, gate: UOp | None) -> UOp:
        """A load of something outside of the kernel, or of what a cluster-mate has computed."""
        if node not in self.values:
            self.loaded.add(place(node))
            return self.param(node).index(*indices, gate=gate).load()
        value, inner = self.values[node], self.inner_axes[node]
        if value.op is Ops.STORE:  # it is read back from the buffer
            self.loaded.add(place(node))
        if not inner:
            zero = value.const_like(0)
            return value if gate is None else gate.where(value, zero)
        if value.op is Ops.STAGE:
            indices = tuple([indices[axis] for axis in inner])
        return UOp(Ops.INDEX, node.dtype, (value, *indices, *([gate] if gate else []))).load()


def make_kernel(cluster: Cluster, stored: set[Statement]) -> tuple[Kernel, tuple[UOp, ...]]:
    """The kernel, and the values that its argument slots hold."""
    sizes = tuple([next(s.axes[axis] for s, axis in loop.items()) for loop in cluster.outer])
    outer = tuple([make_range(i, r.src[0]) for i, r in enumerate(sizes)])
    draft = Draft(cluster, stored, outer, len(outer))
    for statement in cluster.statements:
        if statement in stored:
            draft.param(statement.node)
    written = {place(s.node) for s in stored if s.node.op is Ops.ASSIGN}
    stores = [line for s in cluster.statements if (line := _add(draft, s, written)) is not None]
    stores = _lasting(stores)
    body = factor_out(guard_unproved(UOp(Ops.SINK, dtypes.void, tuple(stores))))
    body, slots = _without_unused(body, tuple(draft.slots))
    checks = tuple([Check(node.arg, node.origin, node.number) for node in draft.checks])
    return Kernel(body, outer, bool(written & draft.loaded), checks), slots


def _lasting(lines: list[UOp]) -> list[UOp]:
    """x = a; x = b  ->  x = b, where nobody reads x between.

    Written twice with the same value, and otherwise between, both would be one node.
    """
    last = {line.src[0]: line for line in lines if line.op is Ops.STORE}
    if len(last) == len(lines):
        return lines
    found: list[UOp] = []
    needed: set[UOp] = set()
    for line in reversed(lines):
        final = last.get(line.src[0], line)
        if line is final or final.src[2:] != line.src[2:] or line in needed:
            found.append(line)
            needed.update(UOp(Ops.SINK, dtypes.void, line.src).toposort())
    return found[::-1]


def _without_unused(body: UOp, slots: tuple[UOp, ...]) -> tuple[UOp, tuple[UOp, ...]]:
    """Arguments numbered anew where one is left over: it was read where nobody asks, after all."""
    nodes = body.toposort()
    used = {n.arg.slot for n in nodes if n.op is Ops.PARAM}
    used |= {n.arg[1] for n in nodes if n.op is Ops.CHECK}
    if len(used) == len(slots):
        return body, slots
    number = {slot: i for i, slot in enumerate(sorted(used))}
    done: dict[UOp, UOp] = {}
    for node in nodes:
        arg = node.arg
        if node.op is Ops.PARAM:
            arg = replace(arg, slot=number[arg.slot])
        elif node.op is Ops.CHECK:
            arg = (arg[0], number[arg[1]], *arg[2:])
        done[node] = UOp(node.op, node.dtype, tuple([done[source] for source in node.src]), arg)
    return done[body], tuple([slots[slot] for slot in sorted(used)])


def _add(draft: Draft, statement: Statement, written: set[UOp]) -> UOp | None:
    """Make a statement's value known to its cluster-mates; what must stand in the kernel's order.

    Stores do, and so do values made of what a later store overwrites.
    """
    axes_of_outer = {loop[statement]: draft.outer[i] for i, loop in enumerate(draft.cluster.outer)}
    inner = tuple(
        [a for a, r in enumerate(statement.axes) if r is not ZERO and a not in axes_of_outer]
    )
    fresh = draft.new_ranges(tuple([statement.axes[a] for a in inner]), AxisKind.LOOP)
    axes_of_outer |= dict(zip(inner, fresh, strict=True))
    axes = tuple([axes_of_outer.get(axis, ZERO) for axis in range(len(statement.axes))])
    value = _value(draft, statement, axes)
    node = statement.node
    loops = tuple(sorted(fresh, key=lambda r: inner[fresh.index(r)] == statement.scanned))
    draft.inner_axes[node] = inner
    if statement not in draft.stored:
        is_urgent = any(place(read) in written for read in statement.reads)
        if inner or is_urgent:
            shape = tuple([r.size for r in fresh])
            value = UOp(Ops.STAGE, node.dtype, (value, *fresh, *loops), shape)
        draft.values[node] = value
        return value if is_urgent else None
    places = reshaped(node, axes) if statement.is_reshaped else destination(node, axes)
    target = draft.param(node).index(*places)
    store = UOp(Ops.STORE, dtypes.void, (target, value, *draft.outer, *loops))
    draft.values[node] = store if inner else value
    return store


def _value(draft: Draft, statement: Statement, axes: Indices) -> UOp:
    reduced = draft.reduced_ranges(statement)
    ranges = dict(zip(statement.axes + statement.reduced, axes + reduced, strict=True))
    ranges[ZERO] = ZERO
    indices = tuple([ranges[index] for index in statement.body_indices])
    twins = statement.twins
    known = {s.node for s in draft.cluster.statements}.union(statement.reads, twins)
    expressions = Expressions(
        known.__contains__,
        lambda node, at, gate: draft.read(twins.get(node, node), at, gate),
        draft.cell_of,
    )
    is_opened = statement.body is statement.node
    value = expressions.build(statement.body, indices, opened=is_opened)
    if reduced:
        value = UOp(Ops.REDUCE, statement.node.dtype, (value, *reduced), statement.node.arg[0])
    return collapse(value)
