"""Choose which unrolled axis becomes the lanes of vectors: one that is contiguous in memory."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from glassgrad.ir.dots import find_dot_reduction
from glassgrad.ir.linear import add, scale
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.strides import stride, written_stride
from glassgrad.ir.uop import UOp, make_range
from glassgrad.loops.nest import binders_of, next_axis_number, substitute_axes

LANE_STRIDES = (0, 1, 2)  # strides between lanes that lower/memory/access.py loads as vectors
UPCAST, UNROLL, LANE = AxisKind.UPCAST, AxisKind.UNROLL, AxisKind.LANE


def choose_lanes(nest: Nest, target: Target) -> Nest:
    """Stores get lanes first, then scratch, then reductions whose result has none."""
    for op in (Ops.STORE, Ops.STAGE, Ops.REDUCE):
        if chosen := _candidates(nest, op, target):
            nest = as_lanes(nest, chosen)
    return nest


def _candidates(nest: Nest, op: Ops, target: Target) -> dict[UOp, int]:
    """Axes and their lane counts; no binder depends on two of them."""
    chosen: dict[UOp, int] = {}
    binders = binders_of(nest.body)
    for binder in binders:
        if binder.op is not op:
            continue
        unrolled = [axis for axis in binder.bound if axis.kind in (UPCAST, UNROLL)]
        if not unrolled or _has_lanes(binder, chosen):
            continue
        width = target.vector_bytes // _largest_itemsize(binder)
        for axis in unrolled:
            lanes = _lane_count(axis.size, width)
            if lanes > 1 and _is_unit_stride(binder, axis):
                if not conflicts_with_lanes(binders, axis, chosen) and not _would_gather(
                    binder, axis, binders, target
                ):
                    chosen[axis] = lanes
                    break
    return chosen


def _would_gather(binder: UOp, axis: UOp, binders: Sequence[UOp], target: Target) -> bool:
    """True if sums inside would gather along this axis but read contiguously along their own."""
    sums = [node for node in binders if node.op is Ops.REDUCE and axis in node.ranges]
    # dot instructions use their own axis
    sums = [node for node in sums if find_dot_reduction(node, target) is None]
    if binder.op is Ops.REDUCE or not sums:
        return False
    for node in set(binder.toposort()).intersection(sums):
        loads = [n.src[0] for n in node.src[0].toposort(stop=_is_binder) if n.op is Ops.LOAD]
        own = [r for r in node.bound if r.kind is UNROLL]
        is_along = any({1} <= {stride(index, r) for index in loads} <= {0, 1} for r in own)
        if is_along and any(stride(index, axis) not in LANE_STRIDES for index in loads):
            return True
    return False


def conflicts_with_lanes(binders: Sequence[UOp], axis: UOp, chosen: Container[UOp] = ()) -> bool:
    """True if another binder that depends on this axis already has lanes."""
    return any(
        (axis in binder.bound or axis in binder.ranges) and _has_lanes(binder, chosen)
        for binder in binders
    )


def _has_lanes(binder: UOp, chosen: Container[UOp]) -> bool:
    """True if the binder's loops or value already have lanes, or are chosen to."""
    return any(
        r.kind is LANE or r in chosen
        for ranges in (binder.bound, binder.value.ranges)
        for r in ranges
    )


def _lane_count(size: int, width: int) -> int:
    """The lanes of a full vector, or fewer if the axis is shorter."""
    while width > 1 and size % width:
        width //= 2
    return width


def _largest_itemsize(binder: UOp) -> int:
    """The largest item size in the computation of a binder."""
    nodes = binder.value.toposort()
    sizes = [n.dtype.itemsize for n in nodes if n.dtype.kind not in ("index", "void")]
    return max(sizes, default=1)


def _is_unit_stride(binder: UOp, axis: UOp) -> bool:
    """True if the binder writes (a reduction: reads) contiguously along this axis."""
    if binder.op is not Ops.REDUCE:
        return written_stride(binder, axis) == 1
    loads = [n.src[0] for n in binder.src[0].toposort(stop=_is_binder) if n.op is Ops.LOAD]
    return any(stride(index, axis) == 1 for index in loads if axis in index.ranges)


def _is_binder(node: UOp) -> bool:
    return node.op in (Ops.REDUCE, Ops.STAGE)


def as_lanes(nest: Nest, chosen: Mapping[UOp, int]) -> Nest:
    """registers of n elements  ->  n/8 registers of 8 lanes"""
    number = next_axis_number(nest)
    changes: dict[UOp, tuple[tuple[UOp, ...], UOp]] = {}
    for axis, lanes in chosen.items():
        if axis.size == lanes:
            lane = make_range(axis.axis, lanes, LANE)
            changes[axis] = ((lane,), lane)
            continue
        registers = make_range(axis.axis, axis.size // lanes, axis.kind)
        lane = make_range(number, lanes, LANE)
        number += 1
        changes[axis] = ((registers, lane), add(scale(registers, lanes), lane))
    return substitute_axes(nest, changes)
