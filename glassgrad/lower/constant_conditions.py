"""op, instructions -> what it gives without being computed: conditions on unrolled axes are known.

A copy of code has numbers where the loop had ranges, and lanes have theirs. What is made of these
alone is folded, so that most masks and choices of padded or cut axes go away.
"""

from __future__ import annotations

from glassgrad.base.dtype import ConstType, DType
from glassgrad.ir.fold import fold
from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.uop import UOp

ARITHMETIC = frozenset((Ops.NEG, Ops.ADD, Ops.SUB, Ops.MUL, Ops.MIN, Ops.MAX))
STACK = Ops.STACK
CONDITIONS = OpGroup.COMPARISON | {Ops.CAST, Ops.AND, Ops.OR, Ops.XOR}


def constant_lanes(value: UOp) -> tuple[ConstType, ...] | None:
    """The lanes of a value, if they are known."""
    if value.is_const:
        return (value.arg,) * value.dtype.count
    if value.op is STACK and all(source.is_const for source in value.src):
        return tuple([source.arg for source in value.src])
    return None


def uniform_scalar(value: UOp) -> UOp | None:
    """The scalar that stands in every lane; None if lanes differ, or may."""
    if value.dtype.count == 1:
        return value
    is_same = value.op is STACK and all(source is value.src[0] for source in value.src)
    return value.src[0] if is_same else None


def uniform_truth(condition: UOp) -> bool | None:
    """Whether a condition holds in all lanes, or in none; None if that is not known."""
    numbers = constant_lanes(condition)
    return bool(numbers[0]) if numbers and len(set(numbers)) == 1 else None


def fold_logic(op: Ops, src: tuple[UOp, ...]) -> UOp | None:
    """True & x  ->  x; False & x  ->  False; the same with | turned around"""
    if src[0].dtype.kind != "bool" or op not in (Ops.AND, Ops.OR):
        return None
    for one, other in (src, src[::-1]):
        known = uniform_truth(one)
        if known is not None:
            return other if known is (op is Ops.AND) else one
    return None


def fold_constants(op: Ops, dtype: DType, src: tuple[UOp, ...], is_index: bool) -> UOp | None:
    """A CONST, or a STACK of them; what is computed with data is left to the machine."""
    if op not in CONDITIONS and not (is_index and op in ARITHMETIC):
        return None
    columns = [constant_lanes(source) for source in src]
    if any(column is None for column in columns):
        return None
    given = src[0].dtype.scalar
    lanes = zip(*[column for column in columns if column is not None], strict=True)
    made = [UOp(Ops.CONST, dtype.scalar, (), fold(op, dtype.scalar, n, given)) for n in lanes]
    return made[0] if dtype.count == 1 else UOp(Ops.STACK, dtype, tuple(made))
