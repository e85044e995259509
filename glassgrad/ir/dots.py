"""REDUCE, Target -> DotReduction: an int8 or int16 dot product that one instruction computes.

The steps of the instruction are an unrolled axis along which both operands are contiguous. The DOT
move (loops/moves/dot.py) creates it; lower/reduce/int8_dot.py emits the instruction.
"""

from __future__ import annotations

from typing import NamedTuple

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Dot, Target
from glassgrad.ir.uop import UOp

NARROW_DTYPES = frozenset((dtypes.int8, dtypes.uint8, dtypes.int16))
SUM_BITS = 32  # bits of the sums of all such instructions


class DotReduction(NamedTuple):
    """A dot product; `right` is None where all its elements are 1."""

    dot: Dot
    steps: UOp  # the unrolled axis
    left: UOp
    right: UOp | None
    is_swapped: bool  # True if the instruction takes `right` first


def find_dot_reduction(reduce: UOp, target: Target) -> DotReduction | None:
    """The dot product that this REDUCE computes in one instruction per step; None if it is none."""
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
    return DotReduction(found[0], unrolled[-1], left, right, found[1])


def narrow_factors(value: UOp) -> tuple[UOp, UOp | None] | None:
    """int(x)·int(y)  ->  x, y;  int(x)  ->  x, None"""
    casts = value.src if value.op is Ops.MUL else (value,)
    if value.dtype.kind not in ("int", "uint") or value.dtype.bits != SUM_BITS:
        return None
    if any(cast.op is not Ops.CAST or cast.src[0].dtype not in NARROW_DTYPES for cast in casts):
        return None
    return casts[0].src[0], casts[1].src[0] if len(casts) > 1 else None


def find_dot(target: Target, left: DType, right: DType | None) -> tuple[Dot, bool] | None:
    """An instruction for operands of these dtypes, and True if it takes them swapped."""
    for dot in target.dots:
        if left is dot.left and right in (dot.right, None):
            return dot, False
        if left is dot.right and right in (dot.left, None):
            return dot, True
    return None
