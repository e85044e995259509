"""SCAN -> gradients of its sources: scans from the end to the start.

Result i depends on all sources up to i, so source i sums contributions of all results from i on.
That sum is a scan in reverse.
"""

from __future__ import annotations

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp

SCAN, ADD, MUL, MULACC = Ops.SCAN, Ops.ADD, Ops.MUL, Ops.MULACC
FLIP, PAD, SHRINK = Ops.FLIP, Ops.PAD, Ops.SHRINK


def source_gradient(node: UOp, g: UOp) -> UOp:
    """The gradient of the first source."""
    op, axis = node.arg
    if op is ADD:
        return _flipped(UOp(SCAN, g.dtype, (_flipped(g, axis),), (ADD, axis)), axis)
    if op is MULACC:
        return _reverse_scan(g, node.src[1], axis)
    if op is not MUL:
        kept = _previous_share(node, axis)
        return (kept.const_like(1) - kept) * _reverse_scan(g, kept, axis)
    before = _shifted_by(node, axis, 1)
    start = _is_first(node, axis).where(before.const_like(1), before)
    return start * _reverse_scan(g, node.src[0], axis)


def factor_gradient(node: UOp, g: UOp) -> UOp:
    """The gradient of b in y = previous y · b + x."""
    axis = node.arg[1]
    return _reverse_scan(g, node.src[1], axis) * _shifted_by(node, axis, 1)


def _previous_share(node: UOp, axis: int) -> UOp:
    """1 where the running extreme stays, 0 where an element replaces it, half on ties."""
    x, before = node.src[0], _shifted_by(node, axis, 1)
    one, zero = x.const_like(1), x.const_like(0)
    stays = x < before if node.arg[0] is Ops.MAX else before < x
    share = stays.where(one, x.eq(before).where(x.const_like(0.5), zero))
    return _is_first(node, axis).where(zero, share)


def _reverse_scan(g: UOp, factor: UOp, axis: int) -> UOp:
    """h[i] = g[i] + factor[i+1] · h[i+1], from the end on"""
    following = _flipped(_shifted_by(factor, axis, -1), axis)
    return _flipped(UOp(SCAN, g.dtype, (_flipped(g, axis), following), (MULACC, axis)), axis)


def _flipped(x: UOp, axis: int) -> UOp:
    return UOp(FLIP, x.dtype, (x,), (axis,))


def _shifted_by(x: UOp, axis: int, by: int) -> UOp:
    """Elements shifted by one along an axis, with 0 at the end that becomes free."""
    size = x.shape[axis]
    if size == 0:
        return x
    box, around = [(0, n) for n in x.shape], [(0, 0)] * len(x.shape)
    box[axis], around[axis] = ((0, size - 1), (1, 0)) if by > 0 else ((1, size), (0, 1))
    rest = UOp(SHRINK, x.dtype, (x,), tuple(box))
    return UOp(PAD, x.dtype, (rest,), tuple(around))


def _is_first(x: UOp, axis: int) -> UOp:
    size = x.shape[axis]
    indices = UOp(Ops.IOTA, dtypes.int32, (), size)
    shape = (size, *(1,) * (len(x.shape) - 1 - axis))
    return UOp(Ops.RESHAPE, dtypes.int32, (indices,), shape).eq(0)
