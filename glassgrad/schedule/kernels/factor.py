"""Distributive factoring: divide or multiply a sum instead of its terms.

    sum over j of p[j]·v[j], where p[j] = e[j] / s   ->   (sum over j of e[j]·v[j]) / s

p need not be staged then: softmax(x) @ v keeps one row of scratch less and divides less.
"""

from __future__ import annotations

from glassgrad.ir.ops import Ops
from glassgrad.ir.reindex import reindex
from glassgrad.ir.traverse import transform
from glassgrad.ir.uop import UOp

SCALING_OPS = frozenset((Ops.FDIV, Ops.MUL))
INDEX, STAGE = Ops.INDEX, Ops.STAGE


def factor_out(body: UOp) -> UOp:
    """Factor sums of products of staged values where that removes the stage."""
    readers = _count_readers(body)
    if not readers:
        return body

    def factor(node: UOp, rebuilt: UOp) -> UOp:
        return _factor_reduction(rebuilt, readers) if node.op is Ops.REDUCE else rebuilt

    return transform(body, factor)


def _count_readers(body: UOp) -> dict[UOp, int]:
    """The number of reads of each STAGE."""
    count: dict[UOp, int] = {}
    for node in body.toposort():
        if node.op is INDEX and node.src[0].op is STAGE:
            count[node.src[0]] = count.get(node.src[0], 0) + 1
    return count


def _factor_reduction(reduce: UOp, readers: dict[UOp, int]) -> UOp:
    product = reduce.src[0]
    if reduce.arg is not Ops.ADD or product.op is not Ops.MUL or product.dtype.kind != "float":
        return reduce
    for staged, other in (product.src, product.src[::-1]):
        parts = _split_scaling(staged, set(reduce.bound), readers)
        if parts is not None:
            op, term, factor = parts
            total = UOp(Ops.REDUCE, reduce.dtype, (term * other, *reduce.bound), Ops.ADD)
            return total.alu(op, factor)
    return reduce


def _split_scaling(
    load: UOp, reduced: set[UOp], readers: dict[UOp, int]
) -> tuple[Ops, UOp, UOp] | None:
    """A value read from a STAGE as (op, term that varies, factor that all terms share)."""
    if load.op is not Ops.LOAD or load.src[0].gate is not None:
        return None
    index = load.src[0]
    stage = index.src[0]
    if stage.op is not Ops.STAGE or readers.get(stage) != 1 or stage.src[0].op not in SCALING_OPS:
        return None
    if set(stage.scratch_indices) != set(stage.bound):
        return None
    indices = dict(zip(stage.scratch_indices, index.indices, strict=True))
    value = stage.src[0]
    term, factor = [reindex(part, indices) for part in value.src]
    is_read = term.op is Ops.LOAD and reduced <= term.ranges  # nothing is recomputed
    if is_read and reduced.isdisjoint(factor.ranges):
        return value.op, term, factor
    return None
