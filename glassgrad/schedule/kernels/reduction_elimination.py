"""Reductions that need no loop: one-hot sums are indexed loads, sums of constants products."""

from __future__ import annotations

from glassgrad.base.dtype import dtypes
from glassgrad.ir.divmod import all_of, within
from glassgrad.ir.facts import substitute
from glassgrad.ir.linear import linear
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, const

ADD, MUL, WHERE, CMPEQ, CAST = Ops.ADD, Ops.MUL, Ops.WHERE, Ops.CMPEQ, Ops.CAST


def collapse(value: UOp) -> UOp:
    """A REDUCE with as many of its ranges gone as can be; anything else as it is."""
    if value.op is not Ops.REDUCE:
        return value
    for reduced in value.src[1:]:
        smaller = _constant(value, reduced) or _one_hot(value, reduced)
        if smaller is not None:
            return collapse(smaller)
    return value


def _without(value: UOp, reduced: UOp, body: UOp) -> UOp:
    """The same reduction of another body, without one of its ranges."""
    rest = tuple([r for r in value.src[1:] if r is not reduced])
    return UOp(Ops.REDUCE, value.dtype, (body, *rest), value.arg) if rest else body


def _constant(value: UOp, reduced: UOp) -> UOp | None:
    """sum(x over r)  ->  x·size(r), where x does not depend on r"""
    body = value.src[0]
    if reduced in body.ranges:
        return None
    if value.arg in (Ops.MAX, Ops.MIN):
        return _without(value, reduced, body)
    if value.arg is ADD and reduced.src[0].is_const and value.dtype.kind != "bool":
        return _without(value, reduced, body * reduced.size)
    return None


def _one_hot(value: UOp, reduced: UOp) -> UOp | None:
    """sum(where(r + c == e, x[r], 0) over r)  ->  x[e − c] if 0 ≤ e − c < size(r) else 0"""
    if value.arg is not ADD or not reduced.src[0].is_const:
        return None
    found = selected(value.src[0])
    if found is None:
        return None
    condition, chosen = found
    at = solve(condition, reduced)
    if at is None:
        return None
    inside = all_of(within(at, 0, reduced.size))
    body = at_place(chosen, reduced, at)
    if inside is not None:
        body = inside.where(body, body.const_like(0))
    return _without(value, reduced, body)


def at_place(chosen: UOp, reduced: UOp, at: UOp) -> UOp:
    """x[e] for x[r]; nothing is loaded where that is outside of r."""
    inside = all_of(within(at, 0, reduced.size))
    return substitute(_gated(chosen, reduced, inside), {reduced: at})


def selected(body: UOp) -> tuple[UOp, UOp] | None:
    """(condition, x) of where(condition, x, 0), or of cast(condition) * x"""
    if body.op is WHERE and body.src[2].is_const and body.src[2].arg == 0:
        return (body.src[0], body.src[1]) if body.src[0].op is CMPEQ else None
    if body.op is CAST and body.src[0].op is CMPEQ:
        return body.src[0], body.const_like(1)
    if body.op is CAST and (found := selected(body.src[0])) is not None:
        condition, chosen = found
        return condition, body.const_like(1) if _is_one(chosen) else chosen.cast(body.dtype)
    if body.op is MUL:
        for one, other in (body.src, body.src[::-1]):
            if (found := selected(one)) is not None:
                condition, chosen = found
                return condition, other if _is_one(chosen) else chosen * other
    return None


def _is_one(value: UOp) -> bool:
    return value.is_const and bool(value.arg == 1)


def solve(condition: UOp, reduced: UOp) -> UOp | None:
    """The r for which the two sides of the comparison are equal, if one side is r + c."""
    for side, other in (condition.src, condition.src[::-1]):
        if not _is_position(side) or reduced in other.ranges or not dtypes.is_int(other.dtype):
            continue
        terms, constant = linear(side.src[0])
        if dict(terms) == {reduced: 1}:
            return UOp(ADD, dtypes.index, (other.cast(dtypes.index), const(-constant)))
    return None


def _is_position(side: UOp) -> bool:
    """An index as an integer in which every value that it has fits."""
    if side.op is not CAST or side.src[0].dtype is not dtypes.index:
        return False
    low, high = side.src[0].bounds
    return bool(dtypes.min(side.dtype) <= low and high <= dtypes.max(side.dtype))


def _gated(chosen: UOp, reduced: UOp, inside: UOp | None) -> UOp:
    """Every load that depends on r is only made where r is in range."""
    if inside is None:
        return chosen
    changes: dict[UOp, UOp] = {}
    for node in chosen.toposort():
        if node.op is Ops.INDEX and reduced in node.ranges:
            gate = inside if node.gate is None else node.gate & inside
            changes[node] = node.src[0].index(*node.indices, gate=gate)
    return substitute(chosen, changes)
