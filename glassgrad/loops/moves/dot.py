"""DOT: several steps of a sum of narrow products at a time, as one instruction takes them.

Where the machine only has an instruction for other dtypes, operands are converted to those: wider
ones, or with 128 added to or taken from one of them, which the sum of the other one makes up for.
"""

from __future__ import annotations

from math import prod
from typing import Any

from glassgrad.base.dtype import DType, dtypes, wrap
from glassgrad.base.fast_dataclasses import frozen, replace
from glassgrad.ir.divmod import less
from glassgrad.ir.dots import find_dot, narrow_factors
from glassgrad.ir.linear import add, scale
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.reindex import reindex
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp, make_range
from glassgrad.loops.moves.pack import MOST_BYTES, reading_order
from glassgrad.loops.nest import next_number, only_sum
from glassgrad.loops.opts import IllegalMove

HALF = 128  # between a byte with a sign and one without
TURNED = {dtypes.int8: dtypes.uint8, dtypes.uint8: dtypes.int8}


@frozen
class Form:
    """Operands as an instruction takes them; `missing` times the sum of `right` must be added."""

    left: UOp
    right: UOp
    steps: int
    missing: int = 0


def dot(nest: Nest, axis: UOp, slot: Any, target: Target) -> Nest:
    """for k: s += x[k]·y[k]  ->  for o: s += x[4o]·y[4o] + … x[4o+3]·y[4o+3]

    If a sum of one operand is needed, it is that of argument `slot`.
    """
    reduce = only_sum(nest, axis)
    form = dot_form(reduce, target, slot)
    if form is None:
        raise IllegalMove("this is no sum of narrow products in memory that the machine can take")
    number = next_number(nest)
    fine = make_range(number, form.steps, AxisKind.UNROLL)
    coarse = make_range(axis.axis, -(-axis.size // form.steps), AxisKind.REDUCE)
    place = add(scale(coarse, form.steps), fine)
    loops = (*[coarse if r is axis else r for r in reduce.bound], fine)
    operands = [_at(operand, axis, place) for operand in (form.left, form.right)]
    wide = [operand.cast(reduce.dtype) for operand in operands]
    found = UOp(Ops.REDUCE, reduce.dtype, (wide[0] * wide[1], *loops), Ops.ADD)
    if form.missing:
        sums = _summed(nest, wide[1], loops, number + 1)
        found = found + sums * sums.const_like(form.missing)
    return replace(nest, body=nest.body.substitute({reduce: found}))


def dot_form(reduce: UOp, target: Target, slot: int | None = None) -> Form | None:
    """The operands of a sum of narrow products as an instruction of the machine takes them: as they
    are, else with another sign, which argument `slot` keeps, else wider.
    """
    left, right = narrow_factors(reduce.src[0]) or (None, None)
    if left is None or right is None or not (_is_read(left) and _is_read(right)):
        return None
    if left.buffer.arg.slot == slot:
        left, right = right, left
    one, two = left.dtype, right.dtype
    if (found := find_dot(target, one, two)) is not None:
        return Form(left, right, found[0].steps)
    turned = TURNED.get(one)
    if turned is not None and (found := find_dot(target, turned, two)) is not None:
        missing = HALF if one is dtypes.uint8 else -HALF
        return Form(_turned(left, turned), right, found[0].steps, missing)
    if (found := find_dot(target, dtypes.int16, dtypes.int16)) is not None:
        return Form(left.cast(dtypes.int16), right.cast(dtypes.int16), found[0].steps)
    return None


def _is_read(value: UOp) -> bool:
    return value.op is Ops.LOAD and value.buffer.op is Ops.PARAM


def _turned(value: UOp, dtype: DType) -> UOp:
    """x - 128 of a byte without a sign, or x + 128 of one with a sign: the same bit changes."""
    return (value ^ value.const_like(wrap(HALF, value.dtype))).bitcast(dtype)


def _at(operand: UOp, axis: UOp, place: UOp) -> UOp:
    """The operand at a step; 0 beyond the end of the axis."""
    moved = reindex(operand, {axis: place})
    if place.vmax < axis.size:
        return moved
    (load,) = [node for node in moved.toposort() if node.op is Ops.LOAD]
    index, valid = load.src[0], less(place, axis.size)
    gate = valid if index.gate is None else index.gate & valid
    return moved.substitute({load: index.src[0].index(*index.indices, gate=gate).load()})


def _summed(nest: Nest, value: UOp, loops: tuple[UOp, ...], number: int) -> UOp:
    """The sum of an operand, computed once for all that share it."""
    free = value.ranges - set(loops)
    around: set[UOp] = set()
    for r in nest.outer:
        if r not in free or r.kind.is_unrolled:
            break
        around.add(r)
    inner = reading_order(nest, free - around)
    fresh = {r: make_range(number + i, r.src[0], r.kind) for i, r in enumerate((*inner, *loops))}
    own = [fresh[r] for r in loops]
    sums = UOp(Ops.REDUCE, value.dtype, (reindex(value, fresh), *own), Ops.ADD)
    if prod(r.size for r in inner) * value.dtype.itemsize > MOST_BYTES:
        raise IllegalMove("there are too many sums for scratch")
    places = [fresh[r] for r in inner]
    shape = tuple([r.size for r in inner])
    kept = UOp(Ops.STAGE, value.dtype, (sums, *places, *places), shape)
    return kept.index(*inner).load() if inner else sums
