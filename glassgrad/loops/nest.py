"""Looking at a nest and rebuilding it: axes, who runs over them, one exchanged for others."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.reindex import rebuild_open
from glassgrad.ir.staged import added_over, carried_over
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp, make_range
from glassgrad.loops.opts import IllegalMove

RANGE = Ops.RANGE
BLOCKS = frozenset((Ops.STORE, Ops.STAGE, Ops.REDUCE, Ops.SCAN))


@lru_cache(maxsize=64)
def nodes_of(body: UOp) -> tuple[UOp, ...]:
    """Everything that a nest is made of, sources first: looked at many times for every move."""
    return tuple(body.toposort())


@lru_cache(maxsize=64)
def blocks_of(body: UOp) -> tuple[UOp, ...]:
    return tuple([node for node in nodes_of(body) if node.op in BLOCKS])


@lru_cache(maxsize=64)
def _ranges_of(body: UOp) -> tuple[UOp, ...]:
    return tuple(sorted([n for n in nodes_of(body) if n.op is RANGE], key=lambda r: r.axis))


def axes(nest: Nest) -> list[UOp]:
    """The ranges of a nest, by number."""
    return list(_ranges_of(nest.body))


def find_axis(nest: Nest, number: int) -> UOp:
    for found in axes(nest):
        if found.axis == number:
            return found
    numbers = ", ".join(str(found.axis) for found in axes(nest))
    raise IllegalMove(f"there is no axis {number}; there are {numbers}")


def next_number(nest: Nest) -> int:
    return max([found.axis for found in axes(nest)], default=-1) + 1


def only_sum(nest: Nest, axis: UOp) -> UOp:
    """The one sum over this axis, if it is still a loop; an IllegalMove if something else is."""
    owners = blocks(nest, axis)
    if len(owners) != 1 or owners[0].op is not Ops.REDUCE or owners[0].arg is not Ops.ADD:
        raise IllegalMove("only a sum is computed like this, and only one sum at a time")
    if axis.kind is not AxisKind.REDUCE:
        raise IllegalMove("this axis is unrolled")
    return owners[0]


def blocks(nest: Nest, axis: UOp) -> list[UOp]:
    """The STOREs, STAGEs, REDUCEs and SCANs that run over this axis."""
    return [node for node in blocks_of(nest.body) if axis in node.bound]


def is_reduced(nest: Nest, axis: UOp) -> bool:
    return any(block.op is Ops.REDUCE for block in blocks(nest, axis))


def is_scanned(nest: Nest, axis: UOp) -> bool:
    """Must the steps of this axis be done in order?"""
    return any(block.op is Ops.SCAN for block in blocks(nest, axis))


def may_repeat(nest: Nest, axis: UOp) -> bool:
    """Is it harmless to do a step of this axis twice? Not if it reads what the nest has written."""
    if not nest.rewrites:
        return True
    stores = [node for node in blocks_of(nest.body) if node.op is Ops.STORE]
    written = {store.src[0].src[0] for store in stores}
    return axis not in nest.outer and all(
        block.op is Ops.STORE and block.arg is None and written.isdisjoint(block.src[1].toposort())
        for block in blocks(nest, axis)
    )


def is_added_to(nest: Nest, axis: UOp) -> bool:
    """Does scratch with a place for every step of this axis carry something, or add it up?"""
    stages = [block for block in blocks(nest, axis) if block.op is Ops.STAGE]
    return any(carried_over(stage) or added_over(stage) for stage in stages)


def exchange(nest: Nest, axis: UOp, ranges: tuple[UOp, ...], value: UOp) -> Nest:
    """Loops over `axis` become loops over `ranges`; where its value was used stands `value`."""
    return exchange_all(nest, {axis: (ranges, value)})


def exchange_all(nest: Nest, changes: Mapping[UOp, tuple[tuple[UOp, ...], UOp]]) -> Nest:
    """The same for several axes, in one walk."""
    done = {axis: value for axis, (_, value) in changes.items()}  # what has changed
    loops = {axis: ranges for axis, (ranges, _) in changes.items()}
    for node in nodes_of(nest.body):
        if node in loops or done.keys().isdisjoint(node.src):
            continue
        if node.op in BLOCKS and not loops.keys().isdisjoint(node.bound):
            done[node] = _with_loops(node, loops, done)
        else:
            src = tuple([done.get(source, source) for source in node.src])
            if src != node.src:
                done[node] = rebuild_open(node, src)
    outer = _spliced(nest.outer, loops)
    return replace(nest, body=done.get(nest.body, nest.body), outer=outer)


Loops = Mapping[UOp, tuple[UOp, ...]]  # axis -> what stands in its place


def _spliced(found: tuple[UOp, ...], loops: Loops) -> tuple[UOp, ...]:
    return tuple([new for r in found for new in loops.get(r, (r,))])


def _with_loops(node: UOp, loops: Loops, done: dict[UOp, UOp]) -> UOp:
    bound = node.bound
    fixed = len(node.src) - len(bound)
    head = tuple([done.get(source, source) for source in node.src[:fixed]])
    made = tuple([new for r in bound for new in (loops[r] if r in loops else (done.get(r, r),))])
    if node.op is Ops.REDUCE and not made:
        return head[0]
    return UOp(node.op, node.dtype, (*head, *made), node.arg)


def reorder(nest: Nest, new_order: dict[UOp, UOp]) -> Nest:
    """Ranges stand where others stood: only the order of loops changes, not what they mean."""
    done: dict[UOp, UOp] = {}  # what has changed
    for node in nodes_of(nest.body):
        src = node.src
        if not done.keys().isdisjoint(src):
            src = tuple([done.get(source, source) for source in src])
        if node.op in BLOCKS and node.op is not Ops.SCAN and node.bound:
            fixed = len(src) - len(node.bound)
            src = (*src[:fixed], *[new_order.get(r, r) for r in src[fixed:]])
        if src != node.src:
            done[node] = UOp(node.op, node.dtype, src, node.arg)
    outer = tuple([new_order.get(r, r) for r in nest.outer])
    return replace(nest, body=done.get(nest.body, nest.body), outer=outer)


def change_kind(nest: Nest, axis: UOp, kind: AxisKind) -> Nest:
    same = make_range(axis.axis, axis.src[0], kind)
    return exchange(nest, axis, (same,), same)
