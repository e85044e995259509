"""REDUCE, Target -> Dotted: a sum of narrow products that takes several steps in one instruction.

The steps are an unrolled axis, along which both operands lie side by side: the DOT move
(loops/moves/dot.py) makes it, and lower/reduce/int8_dot.py writes the instruction.
"""

from __future__ import annotations

from typing import NamedTuple

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Dot, Target
from glassgrad.ir.uop import UOp

NARROW = frozenset((dtypes.int8, dtypes.uint8, dtypes.int16))
WIDE_BITS = 32


class Dotted(NamedTuple):
    """`right` is None where what stands for it is 1 at every step."""

    dot: Dot
    steps: UOp  # the unrolled axis
    left: UOp
    right: UOp | None
    is_turned: bool  # does the instruction take `right` first?


def dot_of(reduce: UOp, target: Target) -> Dotted | None:
    """The instruction for several steps of this sum; None if it is not made of narrow products."""
    if not target.dots or reduce.op is not Ops.REDUCE or reduce.arg is not Ops.ADD:
        return None
    unrolled = [r for r in reduce.bound if r.kind is AxisKind.UNROLL]
    factors = narrow_factors(reduce.src[0])
    if not unrolled or factors is None:
        return None
    left, right = factors
    found = find_dot(target, left.dtype, None if right is None else right.dtype)
    if found is None or unrolled[-1].size != found[0].steps:
        return None
    return Dotted(found[0], unrolled[-1], left, right, found[1])


def narrow_factors(value: UOp) -> tuple[UOp, UOp | None] | None:
    """int(x)·int(y)  ->  x, y;  int(x)  ->  x, None"""
    casts = value.src if value.op is Ops.MUL else (value,)
    if value.dtype.kind not in ("int", "uint") or value.dtype.bits != WIDE_BITS:
        return None
    if any(cast.op is not Ops.CAST or cast.src[0].dtype not in NARROW for cast in casts):
        return None
    return casts[0].src[0], casts[1].src[0] if len(casts) > 1 else None


def find_dot(target: Target, left: DType, right: DType | None) -> tuple[Dot, bool] | None:
    """An instruction for operands of these dtypes, and whether it wants them the other way."""
    for dot in target.dots:
        if left is dot.left and right in (dot.right, None):
            return dot, False
        if left is dot.right and right in (dot.left, None):
            return dot, True
    return None
