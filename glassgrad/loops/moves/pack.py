"""PACK: copy what the loops inside of one loop read of a buffer into scratch, in reading order.

Loads that are only converted to another dtype are converted while copying.
"""

from __future__ import annotations

from math import prod
from typing import Any

from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.dots import find_dot_reduction
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.reindex import reindex
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp, make_range
from glassgrad.loops.nest import (
    binders_of,
    enclosing_loops,
    next_axis_number,
    nodes_of,
    reading_order,
)
from glassgrad.loops.opts import IllegalMove

MAX_SCRATCH_BYTES = 8 << 20  # bytes of one scratch buffer: about what L2 and a share of L3 hold


def pack(nest: Nest, axis: UOp, arg: Any, target: Target) -> Nest:
    """for i: for j: y += x[i, j]  ->  for i: s[:] = x[i, :]; for j: y += s[j]

    `arg` is a slot; or a slot and an axis number: only loads that depend on that axis are copied.
    """
    slot, along = arg if isinstance(arg, tuple) else (arg, None)
    if axis.kind.is_unrolled or target.has_threads:
        raise IllegalMove("scratch needs a loop that is not unrolled, on a target without threads")
    enclosing = enclosing_loops(nest, axis)
    replaced: dict[UOp, UOp] = {}
    number = next_axis_number(nest)
    loads = loads_under(nest, axis, slot)
    if along is not None:
        loads = [load for load in loads if any(r.axis == along for r in load.ranges)]
    for load in loads:
        value = packed_value(nest, load, target)
        inner = tuple(reading_order(nest, load.ranges - enclosing))
        stage = _find_equal_stage(replaced, value, inner)
        if stage is None:
            stage = _make_stage(value, inner, number)
            number += len(inner)
        replaced[value] = stage.index(*inner).load()
    if not replaced:
        raise IllegalMove(f"no load of argument {slot} depends on a loop inside axis {axis.axis}")
    return replace(nest, body=nest.body.substitute(replaced))


def loads_under(nest: Nest, axis: UOp, slot: int) -> list[UOp]:
    """The loads of an argument under a loop that depend on loops further inside."""
    enclosing = enclosing_loops(nest, axis)
    return [
        load
        for load in _loads(nest, slot)
        if load.ranges - enclosing and axis in _loops_over(nest, load)
    ]


def _loads(nest: Nest, slot: int) -> list[UOp]:
    nodes = nodes_of(nest.body)
    for node in nodes:
        if node.op is Ops.STORE and node.buffer.arg.slot == slot:
            raise IllegalMove(f"the kernel writes argument {slot}")
    return [
        node
        for node in nodes
        if node.op is Ops.LOAD and node.buffer.op is Ops.PARAM and node.buffer.arg.slot == slot
    ]


def packed_value(nest: Nest, load: UOp, target: Target) -> UOp:
    """The value to copy for a load: the load, or the conversion that all its readers apply.

    Conversions of a dot product's operands belong to its instruction and stay there.
    """
    widened = _dot_operand_casts(nest, target)
    value = load
    while True:
        readers = [node for node in nodes_of(nest.body) if value in node.src]
        if len(readers) != 1 or readers[0] in widened or not _is_conversion(readers[0]):
            return value
        (value,) = readers


def _dot_operand_casts(nest: Nest, target: Target) -> set[UOp]:
    """The conversions that dot-product instructions absorb."""
    products = [
        binder for binder in binders_of(nest.body) if find_dot_reduction(binder, target) is not None
    ]
    return {cast for reduce in products for cast in (reduce.src[0], *reduce.src[0].src)}


def _is_conversion(node: UOp) -> bool:
    if node.op is Ops.XOR:
        return node.src[1].is_const
    return node.op in (Ops.CAST, Ops.BITCAST) and node.dtype.kind != "index"


def _loops_over(nest: Nest, load: UOp) -> set[UOp]:
    """All loops that enclose a load, including those it does not depend on."""
    found = set(nest.outer)
    dependents = {load}  # nodes that use the load
    for node in nodes_of(nest.body):
        if dependents.isdisjoint(node.src):
            continue
        dependents.add(node)
        computed = node.src[:2] if node.op is Ops.STORE else node.src[:1]
        if node.op in (Ops.STORE, Ops.STAGE, Ops.REDUCE) and not dependents.isdisjoint(computed):
            found.update(node.bound)
    return found


def _make_stage(value: UOp, inner: tuple[UOp, ...], number: int) -> UOp:
    shape = tuple([r.size for r in inner])
    if prod(shape) * value.dtype.itemsize > MAX_SCRATCH_BYTES:
        raise IllegalMove(f"{prod(shape)} elements exceed {MAX_SCRATCH_BYTES} bytes of scratch")
    kinds = [AxisKind.UPCAST if r.kind.is_unrolled else AxisKind.LOOP for r in inner]
    fresh = tuple(
        [
            make_range(number + i, r.src[0], kind)
            for i, (r, kind) in enumerate(zip(inner, kinds, strict=True))
        ]
    )
    copy = reindex(value, dict(zip(inner, fresh, strict=True)))
    return UOp(Ops.STAGE, value.dtype, (copy, *fresh, *fresh), shape)


def _find_equal_stage(replaced: dict[UOp, UOp], value: UOp, inner: tuple[UOp, ...]) -> UOp | None:
    """An earlier STAGE of the same elements in the same order, under other loops."""
    for stage in [load.buffer for load in replaced.values()]:
        if stage.arg == tuple([r.size for r in inner]):
            if reindex(value, dict(zip(inner, stage.bound, strict=True))) is stage.src[0]:
                return stage
    return None
