"""Queries and rewrites of a nest: its axes, the nodes that bind them, substitution of axes.

A *binder* is a STORE, STAGE, REDUCE or SCAN: a node whose loops run over ranges (`node.bound`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.reindex import rebuild_index
from glassgrad.ir.staged import accumulated_loops, carried_loops
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp, make_range
from glassgrad.loops.opts import IllegalMove

RANGE = Ops.RANGE
BINDERS = frozenset((Ops.STORE, Ops.STAGE, Ops.REDUCE, Ops.SCAN))


@lru_cache(maxsize=64)
def nodes_of(body: UOp) -> tuple[UOp, ...]:
    """All nodes of a nest in topological order, cached because every move asks several times."""
    return tuple(body.toposort())


@lru_cache(maxsize=64)
def binders_of(body: UOp) -> tuple[UOp, ...]:
    """The STOREs, STAGEs, REDUCEs and SCANs of a nest, in topological order."""
    return tuple([node for node in nodes_of(body) if node.op in BINDERS])


@lru_cache(maxsize=64)
def _ranges_of(body: UOp) -> tuple[UOp, ...]:
    return tuple(sorted([n for n in nodes_of(body) if n.op is RANGE], key=lambda r: r.axis))


def axes(nest: Nest) -> list[UOp]:
    """The ranges of a nest, by axis number."""
    return list(_ranges_of(nest.body))


def find_axis(nest: Nest, number: int) -> UOp:
    """The axis with this number; IllegalMove if the nest has none."""
    for found in axes(nest):
        if found.axis == number:
            return found
    numbers = ", ".join(str(found.axis) for found in axes(nest))
    raise IllegalMove(f"there is no axis {number}; there are {numbers}")


def next_axis_number(nest: Nest) -> int:
    """The smallest number above those of all axes."""
    return max([found.axis for found in axes(nest)], default=-1) + 1


def only_sum(nest: Nest, axis: UOp) -> UOp:
    """The one sum over this axis; IllegalMove if other binders run over it or it is unrolled."""
    binders = binders_over(nest, axis)
    if len(binders) != 1 or binders[0].op is not Ops.REDUCE or binders[0].arg is not Ops.ADD:
        raise IllegalMove("this move needs an axis of exactly one sum")
    if axis.kind is not AxisKind.REDUCE:
        raise IllegalMove("this axis is already unrolled")
    return binders[0]


def binders_over(nest: Nest, axis: UOp) -> list[UOp]:
    """The binders whose loops include this axis."""
    return [node for node in binders_of(nest.body) if axis in node.bound]


def is_reduced(nest: Nest, axis: UOp) -> bool:
    """True if a reduction runs over this axis."""
    return any(binder.op is Ops.REDUCE for binder in binders_over(nest, axis))


def is_scanned(nest: Nest, axis: UOp) -> bool:
    """True if the steps of this axis must run in order."""
    return any(binder.op is Ops.SCAN for binder in binders_over(nest, axis))


def is_idempotent(nest: Nest, axis: UOp) -> bool:
    """True if executing a step of this axis twice does no harm: it reads nothing that the nest
    writes.
    """
    if not nest.may_alias:
        return True
    stores = [node for node in binders_of(nest.body) if node.op is Ops.STORE]
    written = {store.src[0].src[0] for store in stores}
    return axis not in nest.outer and all(
        binder.op is Ops.STORE
        and binder.arg is None
        and written.isdisjoint(binder.src[1].toposort())
        for binder in binders_over(nest, axis)
    )


def accumulates_in_scratch(nest: Nest, axis: UOp) -> bool:
    """True if scratch that is indexed by this axis is accumulated into or carries a scan."""
    stages = [binder for binder in binders_over(nest, axis) if binder.op is Ops.STAGE]
    return any(carried_loops(stage) or accumulated_loops(stage) for stage in stages)


def substitute_axis(nest: Nest, axis: UOp, ranges: tuple[UOp, ...], value: UOp) -> Nest:
    """Replace the loops over `axis` by loops over `ranges`, and its uses by `value`."""
    return substitute_axes(nest, {axis: (ranges, value)})


def substitute_axes(nest: Nest, changes: Mapping[UOp, tuple[tuple[UOp, ...], UOp]]) -> Nest:
    """`substitute_axis` for several axes in one traversal."""
    done = {axis: value for axis, (_, value) in changes.items()}
    loops = {axis: ranges for axis, (ranges, _) in changes.items()}
    for node in nodes_of(nest.body):
        if node in loops or done.keys().isdisjoint(node.src):
            continue
        if node.op in BINDERS and not loops.keys().isdisjoint(node.bound):
            done[node] = _rebuild_binder(node, loops, done)
        else:
            src = tuple([done.get(source, source) for source in node.src])
            if src != node.src:
                done[node] = rebuild_index(node, src)
    outer = _replace_ranges(nest.outer, loops)
    return replace(nest, body=done.get(nest.body, nest.body), outer=outer)


Replacements = Mapping[UOp, tuple[UOp, ...]]  # axis -> the ranges that replace it


def _replace_ranges(ranges: tuple[UOp, ...], loops: Replacements) -> tuple[UOp, ...]:
    return tuple([new for r in ranges for new in loops.get(r, (r,))])


def _rebuild_binder(node: UOp, loops: Replacements, done: dict[UOp, UOp]) -> UOp:
    bound = node.bound
    fixed = len(node.src) - len(bound)
    head = tuple([done.get(source, source) for source in node.src[:fixed]])
    ranges = tuple([new for r in bound for new in (loops[r] if r in loops else (done.get(r, r),))])
    if node.op is Ops.REDUCE and not ranges:
        return head[0]
    return UOp(node.op, node.dtype, (*head, *ranges), node.arg)


def reorder(nest: Nest, new_order: dict[UOp, UOp]) -> Nest:
    """Permute ranges in every loop list; index expressions keep their meaning."""
    done: dict[UOp, UOp] = {}
    for node in nodes_of(nest.body):
        src = node.src
        if not done.keys().isdisjoint(src):
            src = tuple([done.get(source, source) for source in src])
        if node.op in BINDERS and node.op is not Ops.SCAN and node.bound:
            fixed = len(src) - len(node.bound)
            src = (*src[:fixed], *[new_order.get(r, r) for r in src[fixed:]])
        if src != node.src:
            done[node] = UOp(node.op, node.dtype, src, node.arg)
    outer = tuple([new_order.get(r, r) for r in nest.outer])
    return replace(nest, body=done.get(nest.body, nest.body), outer=outer)


def change_kind(nest: Nest, axis: UOp, kind: AxisKind) -> Nest:
    """The nest with this axis of another kind."""
    same = make_range(axis.axis, axis.src[0], kind)
    return substitute_axis(nest, axis, (same,), same)


def enclosing_loops(nest: Nest, axis: UOp) -> set[UOp]:
    """The loops open at the scratch copy: the axis and those outside of it, without unrolled
    ones.
    """
    if axis in nest.outer:
        inside = nest.outer[: nest.outer.index(axis) + 1]
        return {r for r in inside if not r.kind.is_unrolled}
    enclosing = {r for r in nest.outer if not r.kind.is_unrolled}
    for binder in binders_over(nest, axis):
        bound = binder.bound
        enclosing.update(r for r in bound[: bound.index(axis) + 1] if not r.kind.is_unrolled)
    return enclosing


def reading_order(nest: Nest, ranges: Iterable[UOp]) -> list[UOp]:
    """Ranges in the order in which the nest runs them: loops, then registers, then lanes."""
    stages = [node for node in binders_of(nest.body) if node.op is Ops.STAGE]
    # these run outside of the loops over carried scratch
    carrying = {r for node in stages for r in carried_loops(node)}
    reduce_order: dict[UOp, int] = {}
    for binder in binders_of(nest.body):
        if binder.op is Ops.REDUCE:
            reduce_order |= {r: n for n, r in enumerate(binder.bound)}

    def key(r: UOp) -> tuple[bool, bool, int, bool, int, int]:
        outer = nest.outer.index(r) if r in nest.outer else len(nest.outer)
        position = reduce_order.get(r, 0)
        return (
            r.kind.is_unrolled,
            r.kind is AxisKind.LANE,
            outer,
            r not in carrying,
            position,
            r.axis,
        )

    return sorted(ranges, key=key)
