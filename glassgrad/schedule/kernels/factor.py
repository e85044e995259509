"""What all terms of a sum are divided by, or multiplied with, is applied to the sum instead.

    sum over j of p[j]·v[j], where p[j] = e[j] / s   ->   (sum over j of e[j]·v[j]) / s

p need not be kept at all then: softmax(x) @ v keeps one row of numbers less, and divides less.
"""

from __future__ import annotations

from glassgrad.ir.facts import rebuilt
from glassgrad.ir.ops import Ops
from glassgrad.ir.reindex import reindex
from glassgrad.ir.uop import UOp

SCALED = frozenset((Ops.FDIV, Ops.MUL))
INDEX, STAGE = Ops.INDEX, Ops.STAGE


def factor_out(body: UOp) -> UOp:
    """The kernel with sums of products of staged values rewritten where that saves the stage."""
    readers = _readers(body)
    if not readers:
        return body
    done: dict[UOp, UOp] = {}
    for node in body.toposort():
        same = rebuilt(node, done)
        done[node] = _factored(same, readers) if node.op is Ops.REDUCE else same
    return done[body]


def _readers(body: UOp) -> dict[UOp, int]:
    """How many places read each stage."""
    count: dict[UOp, int] = {}
    for node in body.toposort():
        if node.op is INDEX and node.src[0].op is STAGE:
            count[node.src[0]] = count.get(node.src[0], 0) + 1
    return count


def _factored(reduce: UOp, readers: dict[UOp, int]) -> UOp:
    product = reduce.src[0]
    if reduce.arg is not Ops.ADD or product.op is not Ops.MUL or product.dtype.kind != "float":
        return reduce
    for staged, other in (product.src, product.src[::-1]):
        parts = _parts(staged, set(reduce.bound), readers)
        if parts is not None:
            op, term, factor = parts
            total = UOp(Ops.REDUCE, reduce.dtype, (term * other, *reduce.bound), Ops.ADD)
            return total.alu(op, factor)
    return reduce


def _parts(load: UOp, reduced: set[UOp], readers: dict[UOp, int]) -> tuple[Ops, UOp, UOp] | None:
    """A value read from a stage as (op, what differs from term to term, what all terms share)."""
    if load.op is not Ops.LOAD or load.src[0].gate is not None:
        return None
    index = load.src[0]
    stage = index.src[0]
    if stage.op is not Ops.STAGE or readers.get(stage) != 1 or stage.src[0].op not in SCALED:
        return None
    if set(stage.scratch_indices) != set(stage.bound):
        return None
    places = dict(zip(stage.scratch_indices, index.indices, strict=True))
    value = stage.src[0]
    term, factor = [reindex(part, places) for part in value.src]
    is_read = term.op is Ops.LOAD and reduced <= term.ranges  # nothing is computed over again
    if is_read and reduced.isdisjoint(factor.ranges):
        return value.op, term, factor
    return None
