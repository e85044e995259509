"""Value sets: the set of integers that an index expression takes over its loops.

A sum is split into independent sets: a loop over 5 elements with stride 8 gives {0, 8, 16, 24, 32}.
Sets that fill each other's gaps merge: 8·i + j covers 0 … 39 if j < 8.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise, product
from math import gcd, prod
from typing import Any, NamedTuple

from glassgrad.ir.divmod import is_upper_bound
from glassgrad.ir.linear import Linear, linear, plus
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp

MAX_ENUMERATED = 1 << 16  # iterations that are enumerated where no rule applies
MAX_IN_PYTHON = 2048  # iterations; more are enumerated with NumPy, whose import takes 100 ms
DIVISIONS = frozenset((Ops.FLOORDIV, Ops.FLOORMOD))
CONST, RANGE, MIN = Ops.CONST, Ops.RANGE, Ops.MIN


class Unproved(Exception):
    """No rule tells which elements a store writes."""


class IntegerSet(NamedTuple):
    """Integers from low to high: multiples of `unit` apart, neighbours at most `gap` apart."""

    unit: int
    gap: int
    low: int
    high: int
    is_injective: bool = True  # no integer is produced by two iterations

    @property
    def is_dense(self) -> bool:
        return self.gap == self.unit

    def times(self, factor: int) -> IntegerSet:
        unit, gap = abs(factor) * self.unit, abs(factor) * self.gap
        low, high = sorted((factor * self.low, factor * self.high))
        return IntegerSet(unit, gap, low, high, self.is_injective)


def sets_of(value: Linear, conditions: list[UOp]) -> list[IntegerSet]:
    """The sets that a sum consists of: one per group of terms that share loops."""
    if not conditions and all(atom.op is RANGE for atom in value.terms):
        return [interval(_size(r)).times(factor) for r, factor in value.terms.items()]
    return [
        one_set
        for terms, own in _groups(value.terms, conditions)
        for one_set in _sets_of_group(Linear(terms, 0), own)
    ]


def _groups(
    terms: Mapping[UOp, int], conditions: list[UOp]
) -> list[tuple[dict[UOp, int], list[UOp]]]:
    """Group terms and conditions that depend on the same loops."""
    groups: list[tuple[set[UOp], dict[UOp, int], list[UOp]]] = []
    pairs: list[tuple[UOp, int | None]] = [*terms.items(), *[(c, None) for c in conditions]]
    for node, factor in pairs:
        loops, own, own_conditions = set(node.ranges), {}, []
        differences = []
        if factor is None:
            own_conditions = [node]
        else:
            own = {node: factor}
        for group in groups:
            if loops.isdisjoint(group[0]):
                differences.append(group)
            else:
                loops |= group[0]
                own, own_conditions = group[1] | own, group[2] + own_conditions
        groups = [*differences, (loops, own, own_conditions)]
    if any(own_conditions and not own for _, own, own_conditions in groups):
        raise Unproved("a condition may hold nowhere")
    return [(own, own_conditions) for _, own, own_conditions in groups]


def _sets_of_group(value: Linear, conditions: list[UOp]) -> list[IntegerSet]:
    if not conditions and len(value.terms) == 1:
        ((atom, factor),) = value.terms.items()
        if atom.op is RANGE:
            return [interval(_size(atom)).times(factor)]
        if atom.op is MIN:
            return [_overlapping_tail(atom).times(factor)]
    found = _gated_set(value, conditions) if conditions else _mixed_radix_sets(value)
    return [_enumerated(value, conditions)] if found is None else found


def merge_sets(sets: Iterable[IntegerSet]) -> list[IntegerSet]:
    """for i in 5: for j in 8: 8·i + j  ->  for k in 40: k

    Sets of one integer are left out: callers add their `low` to the sum.
    """
    result: list[IntegerSet] = []
    for one_set in sorted([p for p in sets if p.high > p.low], key=lambda p: (p.gap, p.unit)):
        if result and (one := _merge_two(result[-1], one_set)) is not None:
            result[-1] = one
        else:
            result.append(one_set)
    return result


def _merge_two(fine: IntegerSet, coarse: IntegerSet) -> IntegerSet | None:
    """Both sets as one, if the finer one is dense and as long as the gaps of the other."""
    reach = fine.high - fine.low + fine.unit
    if not fine.is_dense or coarse.unit % fine.unit or coarse.gap > reach:
        return None
    is_injective = (
        fine.is_injective and coarse.is_injective and coarse.is_dense and coarse.gap == reach
    )
    return IntegerSet(
        fine.unit, fine.unit, fine.low + coarse.low, fine.high + coarse.high, is_injective
    )


# ---------------------------------------------------------------------- parts


def _size(loop: UOp) -> int:
    return int(loop.src[0].vmax)


def interval(size: int) -> IntegerSet:
    return IntegerSet(1, 1, 0, size - 1)


def _single_set(value: Linear) -> IntegerSet:
    """The set of a sum whose values form one set."""
    parts = sets_of(value, [])
    found = merge_sets(parts)
    if len(found) > 1:
        raise Unproved("a sum has gaps of different sizes")
    low = value.constant + sum([part.low for part in parts])
    is_injective = all(part.is_injective for part in parts)
    if not found:
        return IntegerSet(1, 1, low, low, is_injective)
    (one_set,) = found
    high = low + one_set.high - one_set.low
    is_injective = is_injective and one_set.is_injective
    return IntegerSet(one_set.unit, one_set.gap, low, high, is_injective)


def _overlapping_tail(atom: UOp) -> IntegerSet:
    """min(8·i, 13): the last block starts earlier, so that it ends where the axis does."""
    value, limit = atom.src
    if limit.op is not CONST:
        raise Unproved("where the last block begins is not constant")
    found, last = _single_set(linear(value)), limit.arg
    if found.high <= last:
        return found
    if found.low >= last:
        return IntegerSet(1, 1, last, last, False)
    return IntegerSet(gcd(found.unit, last - found.low), found.gap, found.low, last, False)


def _gated_set(value: Linear, conditions: list[UOp]) -> list[IntegerSet] | None:
    """8·i + j where 8·i + j < 13: a prefix of the unconditional set."""
    base: Linear | None = None
    low, high = -(1 << 62), 1 << 62
    for condition in conditions:
        if not is_upper_bound(condition):
            return None
        found = linear(condition.src[0])
        base = found if base is None else base
        most = condition.src[1].arg - 1 - found.constant
        if found.terms == base.terms:
            high = min(high, most)
        elif found.terms == {atom: -factor for atom, factor in base.terms.items()}:
            low = max(low, -most)
        else:
            return None
    if base is None or base.terms.keys() != value.terms.keys():
        return None
    factors = {value.terms[atom] / factor for atom, factor in base.terms.items()}
    if len(factors) > 1 or not factors.copy().pop().is_integer():
        return None
    one_set = _single_set(Linear(base.terms, 0))
    if not one_set.is_dense:
        return None
    first = one_set.low + -(-max(low - one_set.low, 0) // one_set.unit) * one_set.unit
    last = one_set.low + (min(high, one_set.high) - one_set.low) // one_set.unit * one_set.unit
    if first > last:
        raise Unproved("a condition holds nowhere")
    kept = IntegerSet(one_set.unit, one_set.unit, first, last, one_set.is_injective)
    return [kept.times(int(factors.pop()))]


class _Quotient(NamedTuple):
    """(number // divisor) % modulus; modulus 0 stands for the whole quotient."""

    divisor: int
    modulus: int
    factor: int


def _mixed_radix_sets(value: Linear) -> list[IntegerSet] | None:
    """a·(i // 12) + b·(i % 12)  ->  a·j + b·k, if i covers multiples of 12"""
    number = _number(value)
    if number is None:
        return None
    digits = [_as_digit(atom, factor, number) for atom, factor in value.terms.items()]
    found = sorted([digit for digit in digits if digit is not None])
    one_set = _single_set(number)
    if len(found) < len(digits) or not one_set.is_dense or one_set.unit != 1 or one_set.low:
        return None
    count, sets = one_set.high + 1, []
    for position, (divisor, modulus, factor) in enumerate(found):
        above = found[position + 1].divisor if position + 1 < len(found) else count
        size = modulus or -(-count // divisor)
        is_last = position + 1 == len(found)
        if divisor * size > above and not (is_last and not modulus):
            return None
        if above % (divisor * size if modulus else divisor):
            return None
        sets.append(IntegerSet(1, 1, 0, size - 1, one_set.is_injective).times(factor))
    covers_number = prod(p.modulus or 1 for p in found) == found[-1].divisor
    is_injective = covers_number and not found[-1].modulus
    return sets if is_injective else [p._replace(is_injective=False) for p in sets]


def _number(value: Linear) -> Linear | None:
    """The common number that quotients and remainders are taken of, up to multiples of divisors."""
    candidates: list[tuple[int, Linear]] = []
    for atom in value.terms:
        inner = atom
        while inner.op in DIVISIONS and inner.src[1].op is CONST:
            inner = inner.src[0]
        if inner is atom:
            return None
        found = linear(inner)
        candidates.append((len(inner.ranges), found))
    return max(candidates, key=lambda pair: (pair[0], *_sort_key(pair[1])))[1]


def _sort_key(value: Linear) -> tuple[int, ...]:
    return (max(value.terms.values(), default=0),)


def _as_digit(atom: UOp, factor: int, number: Linear) -> _Quotient | None:
    """An atom as a digit of the number; None if it is none."""
    modulus = 0
    if atom.op is Ops.FLOORMOD:
        modulus, atom = atom.src[1].arg, atom.src[0]
    divisor = 1
    if atom.op is Ops.FLOORDIV:
        divisor, atom = atom.src[1].arg, atom.src[0]
    if atom.op in DIVISIONS:
        return None
    differences = plus(linear(atom), number, -1)
    whole = divisor * modulus
    is_same = not differences.terms and not differences.constant
    if not is_same and (
        not whole or any(c % whole for c in (differences.constant, *differences.terms.values()))
    ):
        return None
    return _Quotient(divisor, modulus, factor)


# ---------------------------------------------------------------------- enumeration


def _enumerated(value: Linear, conditions: list[UOp]) -> IntegerSet:
    """The set of some terms by enumerating all iterations, if they are few."""
    loops: set[UOp] = set()
    for node in (*value.terms, *conditions):
        loops |= node.ranges
    ordered = sorted(loops, key=lambda r: r.axis)
    sizes = [_size(r) for r in ordered]
    is_fixed = all(r.src[0].op is CONST for r in ordered)
    if not is_fixed or prod(sizes) > MAX_ENUMERATED:
        raise Unproved("no rule says which elements are written")
    return _try_all(value, conditions, ordered, sizes)


def _try_all(
    value: Linear, conditions: list[UOp], loops: list[UOp], sizes: list[int]
) -> IntegerSet:
    if prod(sizes) > MAX_IN_PYTHON:
        return _try_all_vectorized(value, conditions, loops, sizes)
    total: list[int] = []
    for step in product(*map(range, sizes)):
        known: dict[UOp, Any] = dict(zip(loops, step, strict=True))
        if all(_evaluate(condition, known) for condition in conditions):
            total.append(sum([f * _evaluate(atom, known) for atom, f in value.terms.items()]))
    elements = sorted(set(total))
    if not elements:
        raise Unproved("a condition holds nowhere")
    is_injective = len(total) == len(elements)
    differences = [after - before for before, after in pairwise(elements)] or [1]
    return IntegerSet(gcd(*differences), max(differences), elements[0], elements[-1], is_injective)


def _try_all_vectorized(
    value: Linear, conditions: list[UOp], loops: list[UOp], sizes: list[int]
) -> IntegerSet:
    import numpy  # rarely needed, and importing it takes 100 ms

    grid = numpy.indices(sizes).reshape(len(sizes), -1)
    known = dict(zip(loops, grid, strict=True))
    total = numpy.zeros(grid.shape[1], numpy.int64)
    for atom, factor in value.terms.items():
        total = total + factor * _evaluate(atom, known)
    for condition in conditions:
        holds = _evaluate(condition, known)
        total, known = total[holds], {node: found[holds] for node, found in known.items()}
    elements = numpy.unique(total)
    if len(elements) == 0:
        raise Unproved("a condition holds nowhere")
    low, high = int(elements[0]), int(elements[-1])
    if len(elements) == 1:
        return IntegerSet(1, 1, low, high, len(total) == 1)
    differences = numpy.diff(elements)
    return IntegerSet(
        gcd(*differences.tolist()),
        int(differences.max()),
        low,
        high,
        len(total) == len(elements),
    )


def _evaluate(node: UOp, known: dict[UOp, Any]) -> Any:
    found = known.get(node)
    if found is None:
        if node.op is CONST:
            return node.arg
        if node.op not in ARITHMETIC:
            raise Unproved("an index is not made of loops alone")
        found = ARITHMETIC[node.op](*[_evaluate(source, known) for source in node.src])
        known[node] = found
    return found


def _elementwise_min(left: Any, right: Any) -> Any:
    return left * (left < right) + right * (left >= right)


ARITHMETIC: dict[Ops, Callable[..., Any]] = {
    Ops.ADD: operator.add,
    Ops.SUB: operator.sub,
    Ops.MUL: operator.mul,
    Ops.NEG: operator.neg,
    Ops.FLOORDIV: operator.floordiv,
    Ops.FLOORMOD: operator.mod,
    Ops.MIN: _elementwise_min,
    Ops.CMPLT: operator.lt,
    Ops.CMPEQ: operator.eq,
    Ops.CMPNE: operator.ne,
    Ops.AND: operator.and_,
    Ops.OR: operator.or_,
}
