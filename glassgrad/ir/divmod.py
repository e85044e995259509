"""Quotients, remainders and comparisons of index expressions, simplified by known bounds.

All identities are those of floored division, so they hold for negative numbers too.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from glassgrad.base.dtype import dtypes
from glassgrad.ir.linear import (
    FLOORDIV,
    FLOORMOD,
    Linear,
    add,
    build,
    linear,
    order,
    plus,
    scale,
    sub,
)
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, const

INDEX_DTYPE = dtypes.index
TRUE = const(True, dtypes.bool)
FALSE = const(False, dtypes.bool)


def floordiv(value: UOp, divisor: int) -> UOp:
    """value // divisor

    (c·x + y) // c        ->  x + y // c
    (g·x + y) // (g·c)    ->  x // c          if 0 ≤ y < g
    (x // a) // b         ->  x // (a·b)
    """
    if divisor == 1:
        return value
    low, high = value.bounds
    if low // divisor == high // divisor:
        return const(low // divisor)
    terms, constant = linear(value)
    whole = {a: c // divisor for a, c in terms.items() if c % divisor == 0}
    rest = {a: c for a, c in terms.items() if c % divisor}
    if whole or not 0 <= constant < divisor:
        inner = floordiv(build(Linear(rest, constant % divisor)), divisor)
        return build(plus(Linear(whole, constant // divisor), linear(inner)))
    for factor in _factors(rest, divisor):
        inside, outside = _divide_terms(rest, factor)
        if _fits(Linear(outside, constant % factor), factor):
            return floordiv(build(Linear(inside, constant // factor)), divisor // factor)
    if len(rest) == 1:
        ((atom, coefficient),) = rest.items()
        if coefficient == 1 and atom.op is FLOORDIV and atom.src[1].is_const:
            first = atom.src[1].arg
            return floordiv(add(atom.src[0], constant * first), divisor * first)
    return UOp(FLOORDIV, INDEX_DTYPE, (value, const(divisor)))


def mod(value: UOp, divisor: int) -> UOp:
    """value % divisor

    (c·x + y) % c         ->  y % c
    (g·x + y) % (g·c)     ->  g·(x % c) + y   if 0 ≤ y < g
    (x % (a·b)) % b       ->  x % b
    """
    if divisor == 1:
        return const(0)
    low, high = value.bounds
    if low // divisor == high // divisor:
        return sub(value, low // divisor * divisor)
    terms, constant = linear(_open_remainders(value, divisor))
    rest = {a: c % divisor for a, c in terms.items() if c % divisor}
    small = build(Linear(rest, constant % divisor))
    if small.vmin // divisor == small.vmax // divisor:
        return sub(small, small.vmin // divisor * divisor)
    signed = {a: c - divisor if 2 * c > divisor else c for a, c in rest.items()}
    balanced = build(Linear(signed, constant % divisor))
    if balanced.vmin // divisor == balanced.vmax // divisor:
        return sub(balanced, balanced.vmin // divisor * divisor)
    for factor in _factors(rest, divisor):
        inside, outside = _divide_terms(rest, factor)
        remainder = Linear(outside, constant % divisor % factor)
        if _fits(remainder, factor):
            quotient = build(Linear(inside, constant % divisor // factor))
            part = linear(scale(mod(quotient, divisor // factor), factor))
            return build(plus(part, remainder))
    return UOp(FLOORMOD, INDEX_DTYPE, (small, const(divisor)))


def _open_remainders(value: UOp, divisor: int) -> UOp:
    """k·(x % a)  ->  k·x, where they differ by a multiple of the divisor"""
    terms, constant = linear(value)
    result = Linear({}, constant)
    changed = False
    for atom, factor in terms.items():
        part = Linear({atom: factor}, 0)
        if atom.op is FLOORMOD and atom.src[1].is_const and factor * atom.src[1].arg % divisor == 0:
            part = linear(scale(atom.src[0], factor))
            changed = True
        result = plus(result, part)
    return build(result) if changed else value


def _factors(terms: Mapping[UOp, int], divisor: int) -> list[int]:
    """Common factors of the divisor and some coefficient, largest first."""
    found = {gcd(coefficient, divisor) for coefficient in terms.values()}
    return sorted((factor for factor in found if factor > 1), reverse=True)


def _divide_terms(terms: Mapping[UOp, int], factor: int) -> tuple[dict[UOp, int], dict[UOp, int]]:
    """The terms divisible by the factor, divided; and the others."""
    inside = {a: c // factor for a, c in terms.items() if c % factor == 0}
    outside = {a: c for a, c in terms.items() if c % factor}
    return inside, outside


def _fits(value: Linear, size: int) -> bool:
    low, high = build(value).bounds
    return bool(0 <= low and high < size)


def less(left: UOp, right: UOp | int) -> UOp:
    """left < right, as `sum < constant` without common factors; TRUE or FALSE if known."""
    terms, constant = linear(left if isinstance(right, int) and not right else sub(left, right))
    limit = -constant
    factor = gcd(*terms.values()) if terms else 1
    if factor > 1:
        terms = {a: c // factor for a, c in terms.items()}
        limit = -(-limit // factor)
    value = build(Linear(terms, 0))
    if value.vmax < limit:
        return TRUE
    if value.vmin >= limit:
        return FALSE
    return UOp(Ops.CMPLT, dtypes.bool, (value, const(limit)))


def within(value: UOp, start: int, stop: int) -> tuple[UOp, ...]:
    """The conditions for start ≤ value < stop that are not known to hold."""
    if stop <= start:
        return (FALSE,)
    end = getattr(stop, "uop", stop)  # a Size is only known at launch
    conditions = (less(const(start - 1), value), less(value, end))
    return tuple([condition for condition in conditions if condition is not TRUE])


def is_multiple(value: UOp, divisor: int) -> tuple[UOp, ...]:
    """The condition for value % divisor == 0, unless it is known to hold."""
    rest = mod(value, divisor)
    if rest.vmax == 0:
        return ()
    return (UOp(Ops.CMPEQ, dtypes.bool, (rest, const(0))),)


def is_upper_bound(condition: UOp) -> bool:
    """True if the condition is `sum < constant`."""
    if condition.op is not Ops.CMPLT or not condition.src[1].is_const:
        return False
    return condition.src[0].dtype.kind == "index"


def conjuncts(gate: UOp | None) -> list[UOp]:
    """The conditions that a gate is the AND of; the inverse of `conjunction`."""
    found: list[UOp] = []
    stack = [] if gate is None else [gate]
    while stack:
        node = stack.pop()
        if node.op is Ops.AND:
            stack.extend(node.src)
        else:
            found.append(node)
    return found


def conjunction(conditions: tuple[UOp, ...]) -> UOp | None:
    """One gate for all conditions; None if there are none."""
    if FALSE in conditions:
        return FALSE
    gate: UOp | None = None
    for condition in sorted(set(conditions), key=order):
        gate = condition if gate is None else UOp(Ops.AND, dtypes.bool, (gate, condition))
    return gate
