"""op, operands -> constant or operand: folds conditions on unrolled axes while emitting.

An unroll copy has constants where the loop had ranges, and a vector has constant lane numbers.
Arithmetic on these alone is folded, which removes most masks of padded or shortened axes.
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
    """The value of each lane, or None if some lane is not constant."""
    if value.is_const:
        return (value.arg,) * value.dtype.count
    if value.op is STACK and all(source.is_const for source in value.src):
        return tuple([source.arg for source in value.src])
    return None


def uniform_scalar(value: UOp) -> UOp | None:
    """The scalar that all lanes hold; None if lanes may differ."""
    if value.dtype.count == 1:
        return value
    is_same = value.op is STACK and all(source is value.src[0] for source in value.src)
    return value.src[0] if is_same else None


def uniform_truth(condition: UOp) -> bool | None:
    """True or False if a condition is that constant in all lanes, else None."""
    numbers = constant_lanes(condition)
    return bool(numbers[0]) if numbers and len(set(numbers)) == 1 else None


def fold_logic(op: Ops, src: tuple[UOp, ...]) -> UOp | None:
    """True & x -> x; False & x -> False; dually for |"""
    if src[0].dtype.kind != "bool" or op not in (Ops.AND, Ops.OR):
        return None
    for operand, other in (src, src[::-1]):
        constant = uniform_truth(operand)
        if constant is not None:
            return other if constant is (op is Ops.AND) else operand
    return None


def fold_constants(op: Ops, dtype: DType, src: tuple[UOp, ...], is_index: bool) -> UOp | None:
    """A CONST or a STACK of CONSTs; only conditions and index arithmetic are folded."""
    if op not in CONDITIONS and not (is_index and op in ARITHMETIC):
        return None
    columns = [constant_lanes(source) for source in src]
    if any(column is None for column in columns):
        return None
    source_dtype = src[0].dtype.scalar
    lanes = zip(*[column for column in columns if column is not None], strict=True)
    results = [
        UOp(Ops.CONST, dtype.scalar, (), fold(op, dtype.scalar, n, source_dtype)) for n in lanes
    ]
    return results[0] if dtype.count == 1 else UOp(Ops.STACK, dtype, tuple(results))
