"""DOT: several steps of an int8 or int16 dot product per instruction.

Where the machine's instruction takes other dtypes, operands are converted: widened to int16, or
shifted by 128 between int8 and uint8, which a correction term of the other operand's sum undoes.
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
from glassgrad.loops.moves.pack import MAX_SCRATCH_BYTES
from glassgrad.loops.nest import next_axis_number, only_sum, reading_order
from glassgrad.loops.opts import IllegalMove

SIGN_OFFSET = 128  # int8 value + 128 = uint8 value
OTHER_SIGNEDNESS = {dtypes.int8: dtypes.uint8, dtypes.uint8: dtypes.int8}


@frozen
class DotOperands:
    """The operands as the instruction takes them; `correction` times the sum of `right` must be
    added.
    """

    left: UOp
    right: UOp
    steps: int
    correction: int = 0


def dot(nest: Nest, axis: UOp, slot: Any, target: Target) -> Nest:
    """for k: s += x[k]·y[k]  ->  for o: s += x[4o]·y[4o] + … x[4o+3]·y[4o+3]

    A correction term sums the operand read from argument `slot`.
    """
    reduce = only_sum(nest, axis)
    operands = dot_operands(reduce, target, slot)
    if operands is None:
        raise IllegalMove("the machine has no dot-product instruction for this sum")
    number = next_axis_number(nest)
    fine = make_range(number, operands.steps, AxisKind.UNROLL)
    coarse = make_range(axis.axis, -(-axis.size // operands.steps), AxisKind.REDUCE)
    index = add(scale(coarse, operands.steps), fine)
    loops = (*[coarse if r is axis else r for r in reduce.bound], fine)
    parts = [_operand_at(operand, axis, index) for operand in (operands.left, operands.right)]
    wide = [operand.cast(reduce.dtype) for operand in parts]
    total = UOp(Ops.REDUCE, reduce.dtype, (wide[0] * wide[1], *loops), Ops.ADD)
    if operands.correction:
        sums = _stage_sum(nest, wide[1], loops, number + 1)
        total = total + sums * sums.const_like(operands.correction)
    return replace(nest, body=nest.body.substitute({reduce: total}))


def dot_operands(reduce: UOp, target: Target, slot: int | None = None) -> DotOperands | None:
    """The operands of a dot product as an instruction of the machine takes them, or None.

    In order of preference: unchanged, `left` with flipped signedness (argument `slot` keeps its
    own), both widened to int16.
    """
    left, right = narrow_factors(reduce.src[0]) or (None, None)
    if left is None or right is None or not (_is_load(left) and _is_load(right)):
        return None
    if left.buffer.arg.slot == slot:
        left, right = right, left
    one, two = left.dtype, right.dtype
    if (instruction := find_dot(target, one, two)) is not None:
        return DotOperands(left, right, instruction[0].steps)
    flipped = OTHER_SIGNEDNESS.get(one)
    if flipped is not None and (instruction := find_dot(target, flipped, two)) is not None:
        correction = SIGN_OFFSET if one is dtypes.uint8 else -SIGN_OFFSET
        return DotOperands(_flip_sign_bit(left, flipped), right, instruction[0].steps, correction)
    if (instruction := find_dot(target, dtypes.int16, dtypes.int16)) is not None:
        return DotOperands(left.cast(dtypes.int16), right.cast(dtypes.int16), instruction[0].steps)
    return None


def _is_load(value: UOp) -> bool:
    return value.op is Ops.LOAD and value.buffer.op is Ops.PARAM


def _flip_sign_bit(value: UOp, dtype: DType) -> UOp:
    """x - 128 as int8 for a uint8, x + 128 as uint8 for an int8: both flip the top bit."""
    return (value ^ value.const_like(wrap(SIGN_OFFSET, value.dtype))).bitcast(dtype)


def _operand_at(operand: UOp, axis: UOp, step: UOp) -> UOp:
    """The operand at an index; 0 beyond the end of the axis."""
    moved = reindex(operand, {axis: step})
    if step.vmax < axis.size:
        return moved
    (load,) = [node for node in moved.toposort() if node.op is Ops.LOAD]
    index, valid = load.src[0], less(step, axis.size)
    gate = valid if index.gate is None else index.gate & valid
    return moved.substitute({load: index.src[0].index(*index.indices, gate=gate).load()})


def _stage_sum(nest: Nest, value: UOp, loops: tuple[UOp, ...], number: int) -> UOp:
    """The sum of an operand, computed once in scratch for all its readers."""
    free = value.ranges - set(loops)
    enclosing: set[UOp] = set()
    for r in nest.outer:
        if r not in free or r.kind.is_unrolled:
            break
        enclosing.add(r)
    inner = reading_order(nest, free - enclosing)
    fresh = {r: make_range(number + i, r.src[0], r.kind) for i, r in enumerate((*inner, *loops))}
    own = [fresh[r] for r in loops]
    sums = UOp(Ops.REDUCE, value.dtype, (reindex(value, fresh), *own), Ops.ADD)
    if prod(r.size for r in inner) * value.dtype.itemsize > MAX_SCRATCH_BYTES:
        raise IllegalMove(f"the correction sums exceed {MAX_SCRATCH_BYTES} bytes of scratch")
    indices = [fresh[r] for r in inner]
    shape = tuple([r.size for r in inner])
    stage = UOp(Ops.STAGE, value.dtype, (sums, *indices, *indices), shape)
    return stage.index(*inner).load() if inner else sums
