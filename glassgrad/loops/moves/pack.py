"""STAGE: what the loops inside of one loop read of a buffer, copied into scratch first.

Numbers that are read only to be converted to another dtype are converted when they are copied.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.dots import dot_of
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.reindex import reindex
from glassgrad.ir.staged import carried_over
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp, make_range
from glassgrad.loops.nest import blocks, blocks_of, next_number, nodes_of
from glassgrad.loops.opts import IllegalMove

MOST_BYTES = 8 << 20


def stage(nest: Nest, axis: UOp, arg: Any, target: Target) -> Nest:
    """for i: for j: y += x[i, j]  ->  for i: s[:] = x[i, :]; for j: y += s[j]

    `arg` is a slot; with the number of an axis, only what depends on that axis is copied.
    """
    slot, along = arg if isinstance(arg, tuple) else (arg, None)
    if axis.kind.is_unrolled or target.has_threads:
        raise IllegalMove("scratch is filled inside of a loop over cores, blocks or elements")
    around = loops_around(nest, axis)
    made: dict[UOp, UOp] = {}
    number = next_number(nest)
    loads = loads_inside(nest, axis, slot)
    if along is not None:
        loads = [load for load in loads if any(r.axis == along for r in load.ranges)]
    for load in loads:
        value = converted(nest, load, target)
        inner = tuple(reading_order(nest, load.ranges - around))
        kept = _kept_already(made, value, inner)
        if kept is None:
            kept = _staged(value, inner, number)
            number += len(inner)
        made[value] = kept.index(*inner).load()
    if not made:
        raise IllegalMove(f"nothing of argument {slot} is read inside of axis {axis.axis}")
    return replace(nest, body=nest.body.substitute(made))


def loads_inside(nest: Nest, axis: UOp, slot: int) -> list[UOp]:
    """The loads of an argument under a loop that depend on loops further inside."""
    around = loops_around(nest, axis)
    return [
        load
        for load in _loads(nest, slot)
        if load.ranges - around and axis in _loops_of(nest, load)
    ]


def _loads(nest: Nest, slot: int) -> list[UOp]:
    nodes = nodes_of(nest.body)
    for node in nodes:
        if node.op is Ops.STORE and node.buffer.arg.slot == slot:
            raise IllegalMove(f"argument {slot} is written here")
    return [
        node
        for node in nodes
        if node.op is Ops.LOAD and node.buffer.op is Ops.PARAM and node.buffer.arg.slot == slot
    ]


def converted(nest: Nest, load: UOp, target: Target) -> UOp:
    """What is kept of a load: itself, or what all who read it convert it to.

    What a dot product does to its operands stays there.
    """
    widened = _widened(nest, target)
    value = load
    while True:
        readers = [node for node in nodes_of(nest.body) if value in node.src]
        if len(readers) != 1 or readers[0] in widened or not _is_conversion(readers[0]):
            return value
        (value,) = readers


def _widened(nest: Nest, target: Target) -> set[UOp]:
    """The conversions that are a part of dot products."""
    found = [block for block in blocks_of(nest.body) if dot_of(block, target) is not None]
    return {cast for reduce in found for cast in (reduce.src[0], *reduce.src[0].src)}


def _is_conversion(node: UOp) -> bool:
    if node.op is Ops.XOR:
        return node.src[1].is_const
    return node.op in (Ops.CAST, Ops.BITCAST) and node.dtype.kind != "index"


def loops_around(nest: Nest, axis: UOp) -> set[UOp]:
    """The loops that are open where the scratch is filled: the axis and those outside of it."""
    if axis in nest.outer:
        inside = nest.outer[: nest.outer.index(axis) + 1]
        return {r for r in inside if not r.kind.is_unrolled}
    around = {r for r in nest.outer if not r.kind.is_unrolled}
    for block in blocks(nest, axis):
        bound = block.bound
        around.update(r for r in bound[: bound.index(axis) + 1] if not r.kind.is_unrolled)
    return around


def _loops_of(nest: Nest, load: UOp) -> set[UOp]:
    """All loops that a load is made under, also those it does not depend on."""
    found = set(nest.outer)
    above = {load}  # whatever it is a part of
    for node in nodes_of(nest.body):
        if above.isdisjoint(node.src):
            continue
        above.add(node)
        computed = node.src[:2] if node.op is Ops.STORE else node.src[:1]
        if node.op in (Ops.STORE, Ops.STAGE, Ops.REDUCE) and not above.isdisjoint(computed):
            found.update(node.bound)
    return found


def reading_order(nest: Nest, ranges: Iterable[UOp]) -> list[UOp]:
    """Loops in the order in which they run, then registers, then lanes."""
    stages = [node for node in blocks_of(nest.body) if node.op is Ops.STAGE]
    carrying = {r for node in stages for r in carried_over(node)}  # run around all that they carry

    turns: dict[UOp, int] = {}
    for block in blocks_of(nest.body):
        if block.op is Ops.REDUCE:
            turns |= {r: n for n, r in enumerate(block.bound)}

    def place(r: UOp) -> tuple[bool, bool, int, bool, int, int]:
        outer = nest.outer.index(r) if r in nest.outer else len(nest.outer)
        turn = turns.get(r, 0)
        return r.kind.is_unrolled, r.kind is AxisKind.LANE, outer, r not in carrying, turn, r.axis

    return sorted(ranges, key=place)


def _staged(value: UOp, inner: tuple[UOp, ...], number: int) -> UOp:
    shape = tuple([r.size for r in inner])
    if prod(shape) * value.dtype.itemsize > MOST_BYTES:
        raise IllegalMove(f"{prod(shape)} elements are too many for scratch")
    kinds = [AxisKind.UPCAST if r.kind.is_unrolled else AxisKind.LOOP for r in inner]
    fresh = tuple(
        [
            make_range(number + i, r.src[0], kind)
            for i, (r, kind) in enumerate(zip(inner, kinds, strict=True))
        ]
    )
    copy = reindex(value, dict(zip(inner, fresh, strict=True)))
    return UOp(Ops.STAGE, value.dtype, (copy, *fresh, *fresh), shape)


def _kept_already(made: dict[UOp, UOp], value: UOp, inner: tuple[UOp, ...]) -> UOp | None:
    """A STAGE of the same elements in the same order, under other loops."""
    for kept in [load.buffer for load in made.values()]:
        if kept.arg == tuple([r.size for r in inner]):
            if reindex(value, dict(zip(inner, kept.bound, strict=True))) is kept.src[0]:
                return kept
    return None
