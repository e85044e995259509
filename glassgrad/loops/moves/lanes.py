"""Which unrolled axis becomes the lanes of vectors: one that walks memory element by element."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from glassgrad.ir.dots import dot_of
from glassgrad.ir.linear import add, scale
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.strides import stride, written_stride
from glassgrad.ir.uop import UOp, make_range
from glassgrad.loops.nest import blocks_of, exchange_all, next_number

NEAR = (0, 1, 2)  # distances of lanes that vectors are loaded from: lower/memory/access.py
UPCAST, UNROLL, LANE = AxisKind.UPCAST, AxisKind.UNROLL, AxisKind.LANE


def choose_lanes(nest: Nest, target: Target) -> Nest:
    """Stores first, then scratch, then reductions whose place has no lanes."""
    for op in (Ops.STORE, Ops.STAGE, Ops.REDUCE):
        if chosen := _candidates(nest, op, target):
            nest = as_lanes(nest, chosen)
    return nest


def _candidates(nest: Nest, op: Ops, target: Target) -> dict[UOp, int]:
    """Axes, and how many lanes each has; no block depends on two of them."""
    chosen: dict[UOp, int] = {}
    blocks = blocks_of(nest.body)
    for block in blocks:
        if block.op is not op:
            continue
        unrolled = [axis for axis in block.bound if axis.kind in (UPCAST, UNROLL)]
        if not unrolled or _has_lanes(block, chosen):
            continue
        width = target.vector_bytes // _widest(block)
        for axis in unrolled:
            lanes = _fitting(axis.size, width)
            if lanes > 1 and _is_unit_stride(block, axis):
                if not meets_lanes(blocks, axis, chosen) and not _jumps(
                    block, axis, blocks, target
                ):
                    chosen[axis] = lanes
                    break
    return chosen


def _jumps(block: UOp, axis: UOp, blocks: Sequence[UOp], target: Target) -> bool:
    """Do sums read all over memory along this axis, but in a row along their own?"""
    sums = [node for node in blocks if node.op is Ops.REDUCE and axis in node.ranges]
    sums = [node for node in sums if dot_of(node, target) is None]  # these step over their own
    if block.op is Ops.REDUCE or not sums:
        return False
    for node in set(block.toposort()).intersection(sums):
        loads = [n.src[0] for n in node.src[0].toposort(stop=_is_block) if n.op is Ops.LOAD]
        own = [r for r in node.bound if r.kind is UNROLL]
        is_along = any({1} <= {stride(index, r) for index in loads} <= {0, 1} for r in own)
        if is_along and any(stride(index, axis) not in NEAR for index in loads):
            return True
    return False


def meets_lanes(blocks: Sequence[UOp], axis: UOp, chosen: Container[UOp] = ()) -> bool:
    """Does another block that depends on this axis have lanes of its own?"""
    return any(
        (axis in block.bound or axis in block.ranges) and _has_lanes(block, chosen)
        for block in blocks
    )


def _has_lanes(block: UOp, chosen: Container[UOp]) -> bool:
    """Are there lanes already, or soon, in the block's own loops or in what it computes?"""
    return any(
        r.kind is LANE or r in chosen
        for ranges in (block.bound, block.value.ranges)
        for r in ranges
    )


def _fitting(size: int, width: int) -> int:
    """As many lanes as the machine has, or fewer if the axis is that short."""
    while width > 1 and size % width:
        width //= 2
    return width


def _widest(block: UOp) -> int:
    """The largest element that is computed with."""
    nodes = block.value.toposort()
    sizes = [n.dtype.itemsize for n in nodes if n.dtype.kind not in ("index", "void")]
    return max(sizes, default=1)


def _is_unit_stride(block: UOp, axis: UOp) -> bool:
    if block.op is not Ops.REDUCE:
        return written_stride(block, axis) == 1
    loads = [n.src[0] for n in block.src[0].toposort(stop=_is_block) if n.op is Ops.LOAD]
    return any(stride(index, axis) == 1 for index in loads if axis in index.ranges)


def _is_block(node: UOp) -> bool:
    return node.op in (Ops.REDUCE, Ops.STAGE)


def as_lanes(nest: Nest, chosen: Mapping[UOp, int]) -> Nest:
    """registers of n elements  ->  n/8 registers of 8 lanes"""
    number = next_number(nest)
    changes: dict[UOp, tuple[tuple[UOp, ...], UOp]] = {}
    for axis, lanes in chosen.items():
        if axis.size == lanes:
            lane = make_range(axis.axis, lanes, LANE)
            changes[axis] = ((lane,), lane)
            continue
        several = make_range(axis.axis, axis.size // lanes, axis.kind)
        lane = make_range(number, lanes, LANE)
        number += 1
        changes[axis] = ((several, lane), add(scale(several, lanes), lane))
    return exchange_all(nest, changes)
