"""Reductions that need no loop: one-hot sums become indexed loads, sums of constants products."""

from __future__ import annotations

from glassgrad.base.dtype import dtypes
from glassgrad.ir.divmod import conjunction, within
from glassgrad.ir.facts import substitute
from glassgrad.ir.linear import linear
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, const

ADD, MUL, WHERE, CMPEQ, CAST = Ops.ADD, Ops.MUL, Ops.WHERE, Ops.CMPEQ, Ops.CAST


def eliminate_reduction(value: UOp) -> UOp:
    """The REDUCE with as many ranges eliminated as possible; other values unchanged."""
    if value.op is not Ops.REDUCE:
        return value
    for reduced in value.src[1:]:
        smaller = _invariant(value, reduced) or _lookup(value, reduced)
        if smaller is not None:
            return eliminate_reduction(smaller)
    return value


def _drop_range(value: UOp, reduced: UOp, body: UOp) -> UOp:
    """The same reduction of another body, without one of its ranges."""
    rest = tuple([r for r in value.src[1:] if r is not reduced])
    return UOp(Ops.REDUCE, value.dtype, (body, *rest), value.arg) if rest else body


def _invariant(value: UOp, reduced: UOp) -> UOp | None:
    """sum(x over r)  ->  x·size(r), where x does not depend on r"""
    body = value.src[0]
    if reduced in body.ranges:
        return None
    if value.arg in (Ops.MAX, Ops.MIN):
        return _drop_range(value, reduced, body)
    if value.arg is ADD and reduced.src[0].is_const and value.dtype.kind != "bool":
        return _drop_range(value, reduced, body * reduced.size)
    return None


def _lookup(value: UOp, reduced: UOp) -> UOp | None:
    """sum(where(r + c == e, x[r], 0) over r)  ->  x[e − c] if 0 ≤ e − c < size(r) else 0"""
    if value.arg is not ADD or not reduced.src[0].is_const:
        return None
    found = match_one_hot(value.src[0])
    if found is None:
        return None
    condition, chosen = found
    at = solve_for(condition, reduced)
    if at is None:
        return None
    inside = conjunction(within(at, 0, reduced.size))
    body = index_at(chosen, reduced, at)
    if inside is not None:
        body = inside.where(body, body.const_like(0))
    return _drop_range(value, reduced, body)


def index_at(chosen: UOp, reduced: UOp, at: UOp) -> UOp:
    """x[e] for x[r]; loads are gated by the bounds of r."""
    inside = conjunction(within(at, 0, reduced.size))
    return substitute(_gate_loads(chosen, reduced, inside), {reduced: at})


def match_one_hot(body: UOp) -> tuple[UOp, UOp] | None:
    """(condition, x) of where(condition, x, 0), or of cast(condition) * x"""
    if body.op is WHERE and body.src[2].is_const and body.src[2].arg == 0:
        return (body.src[0], body.src[1]) if body.src[0].op is CMPEQ else None
    if body.op is CAST and body.src[0].op is CMPEQ:
        return body.src[0], body.const_like(1)
    if body.op is CAST and (found := match_one_hot(body.src[0])) is not None:
        condition, chosen = found
        return condition, body.const_like(1) if _is_one(chosen) else chosen.cast(body.dtype)
    if body.op is MUL:
        for one, other in (body.src, body.src[::-1]):
            if (found := match_one_hot(one)) is not None:
                condition, chosen = found
                return condition, other if _is_one(chosen) else chosen * other
    return None


def _is_one(value: UOp) -> bool:
    return value.is_const and bool(value.arg == 1)


def solve_for(condition: UOp, reduced: UOp) -> UOp | None:
    """The r for which both sides of a comparison are equal, if one side is r + c."""
    for side, other in (condition.src, condition.src[::-1]):
        if not _is_exact_index(side) or reduced in other.ranges or not dtypes.is_int(other.dtype):
            continue
        terms, constant = linear(side.src[0])
        if dict(terms) == {reduced: 1}:
            return UOp(ADD, dtypes.index, (other.cast(dtypes.index), const(-constant)))
    return None


def _is_exact_index(side: UOp) -> bool:
    """True if the value is an index cast to an integer type that holds all its values."""
    if side.op is not CAST or side.src[0].dtype is not dtypes.index:
        return False
    low, high = side.src[0].bounds
    return bool(dtypes.min(side.dtype) <= low and high <= dtypes.max(side.dtype))


def _gate_loads(chosen: UOp, reduced: UOp, inside: UOp | None) -> UOp:
    """Gate every load that depends on r by the bounds of r."""
    if inside is None:
        return chosen
    changes: dict[UOp, UOp] = {}
    for node in chosen.toposort():
        if node.op is Ops.INDEX and reduced in node.ranges:
            gate = inside if node.gate is None else node.gate & inside
            changes[node] = node.src[0].index(*node.indices, gate=gate)
    return substitute(chosen, changes)
