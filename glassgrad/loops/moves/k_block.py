"""PARTIAL: sums that are collected in scratch while parts of what is summed go by.

A part is small enough to be copied into the nearest cache; every sum that needs it takes its share
before the next part comes.
"""

from __future__ import annotations

from math import prod
from typing import Any

from glassgrad.base.dtype import dtypes
from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.linear import add, scale
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.reindex import reindex
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp, make_range
from glassgrad.loops.moves.pack import MOST_BYTES, loops_around, reading_order
from glassgrad.loops.nest import exchange, find_axis, next_number, only_sum
from glassgrad.loops.opts import IllegalMove


def partial(nest: Nest, axis: UOp, arg: Any, target: Target) -> Nest:
    """for i: for j: y = sum of x[j, k]  ->  for i: s = 0; for 8 k: for j: s[j] += their sum;
    for j: y = s[j]
    """
    outside, amount = find_axis(nest, arg[0]), arg[1]
    reduce = only_sum(nest, axis)
    if not reduce.ranges <= set(nest.outer):
        raise IllegalMove("this sum is not computed for the results themselves")
    if outside not in nest.outer or outside.kind.is_unrolled or target.has_threads:
        raise IllegalMove("scratch is filled inside of a loop over cores, blocks or elements")
    if axis.size % amount or axis.size == amount:
        raise IllegalMove(f"{amount} at a time do not divide {axis.size}")
    inner = _inside(nest, reduce, loops_around(nest, outside))
    number = next_number(nest)
    fresh = {r: make_range(number + i, r.src[0], r.kind) for i, r in enumerate(inner)}
    sums = _of_a_part(reduce, axis, amount, number + len(inner))
    part = make_range(axis.axis, axis.size // amount)
    places = reading_order(nest, inner)
    shape = tuple([r.size for r in places])
    if prod(shape) * reduce.dtype.itemsize > MOST_BYTES or not places:
        raise IllegalMove(f"{prod(shape)} sums are too many for scratch, or one")
    loops = (part, *[fresh[r] for r in inner])
    kept = UOp(
        Ops.STAGE,
        reduce.dtype,
        (reindex(sums, fresh), *[fresh[r] for r in places], *loops),
        shape,
    )
    again = kept.index(*places).load()
    return replace(nest, body=nest.body.substitute({reduce: again}))


def _inside(nest: Nest, reduce: UOp, around: set[UOp]) -> list[UOp]:
    """The loops, registers and lanes that each part goes by, in order."""
    return [r for r in nest.outer if r in reduce.ranges and r not in around]


def _of_a_part(reduce: UOp, axis: UOp, amount: int, number: int) -> UOp:
    """The sum over `amount` steps of the axis, of the part that the axis now numbers."""
    part = make_range(axis.axis, axis.size // amount)
    step = make_range(number, amount, AxisKind.REDUCE)
    place = part if amount == 1 else add(scale(part, amount), step)
    lone = Nest(UOp(Ops.SINK, dtypes.void, (reduce,)))
    steps = () if amount == 1 else (step,)
    return exchange(lone, axis, steps, place).body.src[0]
