"""K_BLOCK: a reduction is computed block by block, and partial sums accumulate in scratch.

A block of the reduction is small enough to pack into L1; every sum takes its share before the next
block.
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
from glassgrad.loops.moves.pack import MAX_SCRATCH_BYTES
from glassgrad.loops.nest import (
    enclosing_loops,
    find_axis,
    next_axis_number,
    only_sum,
    reading_order,
    substitute_axis,
)
from glassgrad.loops.opts import IllegalMove


def k_block(nest: Nest, axis: UOp, arg: Any, target: Target) -> Nest:
    """for i: for j: y = sum of x[j, k]
    ->  for i: s = 0; for blocks of 8 k: for j: s[j] += their sum; for j: y = s[j]
    """
    outer_axis, amount = find_axis(nest, arg[0]), arg[1]
    reduce = only_sum(nest, axis)
    if not reduce.ranges <= set(nest.outer):
        raise IllegalMove("the sum depends on loops that the outputs do not have")
    if outer_axis not in nest.outer or outer_axis.kind.is_unrolled or target.has_threads:
        raise IllegalMove(
            "scratch needs a shared loop that is not unrolled, on a target without threads"
        )
    if axis.size % amount or axis.size == amount:
        raise IllegalMove(f"blocks of {amount} do not evenly divide {axis.size}")
    inner = _inner_loops(nest, reduce, enclosing_loops(nest, outer_axis))
    number = next_axis_number(nest)
    renamed = {r: make_range(number + i, r.src[0], r.kind) for i, r in enumerate(inner)}
    sums = _sum_of_block(reduce, axis, amount, number + len(inner))
    block = make_range(axis.axis, axis.size // amount)
    indices = reading_order(nest, inner)
    shape = tuple([r.size for r in indices])
    if prod(shape) * reduce.dtype.itemsize > MAX_SCRATCH_BYTES or not indices:
        raise IllegalMove(
            f"{prod(shape)} partial sums exceed {MAX_SCRATCH_BYTES} bytes, or no loop is inside"
        )
    loops = (block, *[renamed[r] for r in inner])
    stage = UOp(
        Ops.STAGE,
        reduce.dtype,
        (reindex(sums, renamed), *[renamed[r] for r in indices], *loops),
        shape,
    )
    reloaded = stage.index(*indices).load()
    return replace(nest, body=nest.body.substitute({reduce: reloaded}))


def _inner_loops(nest: Nest, reduce: UOp, around: set[UOp]) -> list[UOp]:
    """The loops, registers and lanes that run inside each block, in order."""
    return [r for r in nest.outer if r in reduce.ranges and r not in around]


def _sum_of_block(reduce: UOp, axis: UOp, amount: int, number: int) -> UOp:
    """The sum over one block of `amount` steps; `axis` then numbers the blocks."""
    block = make_range(axis.axis, axis.size // amount)
    step = make_range(number, amount, AxisKind.REDUCE)
    position = block if amount == 1 else add(scale(block, amount), step)
    alone = Nest(UOp(Ops.SINK, dtypes.void, (reduce,)))
    steps = () if amount == 1 else (step,)
    return substitute_axis(alone, axis, steps, position).body.src[0]
