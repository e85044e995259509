"""An index expression -> the set of integers that it takes as its loops run.

A sum is made of independent parts, each a set of integers, `Steps`: a loop over 5 elements that are
8 apart gives 0, 8, 16, 24, 32. Parts that fill each other's gaps are one: 8·i + j is all of 0 … 39
if j < 8.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise, product
from math import gcd, prod
from typing import Any, NamedTuple

from glassgrad.ir.divmod import is_limit
from glassgrad.ir.linear import Linear, linear, plus
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp

MAX_ENUMERATED = 1 << 16  # iterations of loops that are tried one by one where no rule helps
MAX_IN_PYTHON = 2048  # iterations: more are tried with NumPy, whose import takes 100 ms
DIVIDING = frozenset((Ops.FLOORDIV, Ops.FLOORMOD))
CONST, RANGE, MIN = Ops.CONST, Ops.RANGE, Ops.MIN


class Unproved(Exception):
    """No rule says which elements a store writes."""


class Steps(NamedTuple):
    """Integers from low to high that are multiples of `unit` apart, neighbours at most `gap`."""

    unit: int
    gap: int
    low: int
    high: int
    is_once: bool = True  # no integer comes from two iterations

    @property
    def is_dense(self) -> bool:
        return self.gap == self.unit

    def times(self, factor: int) -> Steps:
        unit, gap = abs(factor) * self.unit, abs(factor) * self.gap
        low, high = sorted((factor * self.low, factor * self.high))
        return Steps(unit, gap, low, high, self.is_once)


def parts_of(value: Linear, conditions: list[UOp]) -> list[Steps]:
    """The sets that a sum is made of: one for each group of terms that share loops."""
    if not conditions and all(atom.op is RANGE for atom in value.terms):
        return [counted(_size(r)).times(factor) for r, factor in value.terms.items()]
    return [
        part
        for terms, own in _groups(value.terms, conditions)
        for part in _group_parts(Linear(terms, 0), own)
    ]


def _groups(
    terms: Mapping[UOp, int], conditions: list[UOp]
) -> list[tuple[dict[UOp, int], list[UOp]]]:
    """Terms and conditions that speak of the same loops stand together."""
    groups: list[tuple[set[UOp], dict[UOp, int], list[UOp]]] = []
    pairs: list[tuple[UOp, int | None]] = [*terms.items(), *[(c, None) for c in conditions]]
    for node, factor in pairs:
        loops, own, asked = set(node.ranges), {}, []
        apart = []
        if factor is None:
            asked = [node]
        else:
            own = {node: factor}
        for group in groups:
            if loops.isdisjoint(group[0]):
                apart.append(group)
            else:
                loops |= group[0]
                own, asked = group[1] | own, group[2] + asked
        groups = [*apart, (loops, own, asked)]
    if any(asked and not own for _, own, asked in groups):
        raise Unproved("a condition may hold nowhere")
    return [(own, asked) for _, own, asked in groups]


def _group_parts(value: Linear, conditions: list[UOp]) -> list[Steps]:
    if not conditions and len(value.terms) == 1:
        ((atom, factor),) = value.terms.items()
        if atom.op is RANGE:
            return [counted(_size(atom)).times(factor)]
        if atom.op is MIN:
            return [_tail(atom).times(factor)]
    found = _masked(value, conditions) if conditions else _divided(value)
    return [_enumerated(value, conditions)] if found is None else found


def joined(parts: Iterable[Steps]) -> list[Steps]:
    """for i in 5: for j in 8: 8·i + j  ->  for k in 40: k"""
    result: list[Steps] = []
    for part in sorted([p for p in parts if p.high > p.low], key=lambda p: (p.gap, p.unit)):
        if result and (one := _filled(result[-1], part)) is not None:
            result[-1] = one
        else:
            result.append(part)
    return result


def _filled(fine: Steps, coarse: Steps) -> Steps | None:
    """Both as one set, if the finer one is dense and as long as the gaps of the other."""
    reach = fine.high - fine.low + fine.unit
    if not fine.is_dense or coarse.unit % fine.unit or coarse.gap > reach:
        return None
    is_once = fine.is_once and coarse.is_once and coarse.is_dense and coarse.gap == reach
    return Steps(fine.unit, fine.unit, fine.low + coarse.low, fine.high + coarse.high, is_once)


# ---------------------------------------------------------------------- parts


def _size(loop: UOp) -> int:
    return int(loop.src[0].vmax)


def counted(size: int) -> Steps:
    return Steps(1, 1, 0, size - 1)


def _one_part(value: Linear) -> Steps:
    """A sum whose values are one set."""
    found = joined(parts_of(value, []))
    if len(found) > 1:
        raise Unproved("a sum has gaps of different sizes")
    if not found:
        return Steps(1, 1, value.constant, value.constant)
    (part,) = found
    low, high = part.low + value.constant, part.high + value.constant
    return Steps(part.unit, part.gap, low, high, part.is_once)


def _tail(atom: UOp) -> Steps:
    """min(8·i, 13): the last block begins earlier, so that it ends where the axis does."""
    value, limit = atom.src
    if limit.op is not CONST:
        raise Unproved("where the last block begins is not constant")
    found, last = _one_part(linear(value)), limit.arg
    if found.high <= last:
        return found
    if found.low >= last:
        return Steps(1, 1, last, last, False)
    return Steps(gcd(found.unit, last - found.low), found.gap, found.low, last, False)


def _masked(value: Linear, conditions: list[UOp]) -> list[Steps] | None:
    """8·i + j where 8·i + j < 13: the beginning of what is there without the condition."""
    base: Linear | None = None
    low, high = -(1 << 62), 1 << 62
    for condition in conditions:
        if not is_limit(condition):
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
    part = _one_part(Linear(base.terms, 0))
    if not part.is_dense:
        return None
    first = part.low + -(-max(low - part.low, 0) // part.unit) * part.unit
    last = part.low + (min(high, part.high) - part.low) // part.unit * part.unit
    if first > last:
        raise Unproved("a condition holds nowhere")
    kept = Steps(part.unit, part.unit, first, last, part.is_once)
    return [kept.times(int(factors.pop()))]


class _Quotient(NamedTuple):
    """(number // divisor) % modulus; the modulus is 0 where all of the quotient is taken."""

    divisor: int
    modulus: int
    factor: int


def _divided(value: Linear) -> list[Steps] | None:
    """a·(i // 12) + b·(i % 12)  ->  a·j + b·k, if i counts through multiples of 12"""
    number = _number(value)
    if number is None:
        return None
    digits = [_digit(atom, factor, number) for atom, factor in value.terms.items()]
    found = sorted([digit for digit in digits if digit is not None])
    part = _one_part(number)
    if len(found) < len(digits) or not part.is_dense or part.unit != 1 or part.low:
        return None
    count, parts = part.high + 1, []
    for place, (divisor, modulus, factor) in enumerate(found):
        above = found[place + 1].divisor if place + 1 < len(found) else count
        size = modulus or -(-count // divisor)
        is_last = place + 1 == len(found)
        if divisor * size > above and not (is_last and not modulus):
            return None
        if above % (divisor * size if modulus else divisor):
            return None
        parts.append(Steps(1, 1, 0, size - 1, part.is_once).times(factor))
    covers_number = prod(p.modulus or 1 for p in found) == found[-1].divisor
    is_once = covers_number and not found[-1].modulus
    return parts if is_once else [p._replace(is_once=False) for p in parts]


def _number(value: Linear) -> Linear | None:
    """What quotients and remainders are taken of: the same sum, but for multiples of divisors."""
    candidates: list[tuple[int, Linear]] = []
    for atom in value.terms:
        inner = atom
        while inner.op in DIVIDING and inner.src[1].op is CONST:
            inner = inner.src[0]
        if inner is atom:
            return None
        found = linear(inner)
        candidates.append((len(inner.ranges), found))
    return max(candidates, key=lambda pair: (pair[0], *_size_of(pair[1])))[1]


def _size_of(value: Linear) -> tuple[int, ...]:
    return (max(value.terms.values(), default=0),)


def _digit(atom: UOp, factor: int, number: Linear) -> _Quotient | None:
    """An atom as a digit of the number; None if it is something else."""
    modulus = 0
    if atom.op is Ops.FLOORMOD:
        modulus, atom = atom.src[1].arg, atom.src[0]
    divisor = 1
    if atom.op is Ops.FLOORDIV:
        divisor, atom = atom.src[1].arg, atom.src[0]
    if atom.op in DIVIDING:
        return None
    apart = plus(linear(atom), number, -1)
    whole = divisor * modulus
    is_same = not apart.terms and not apart.constant
    if not is_same and (
        not whole or any(c % whole for c in (apart.constant, *apart.terms.values()))
    ):
        return None
    return _Quotient(divisor, modulus, factor)


# ---------------------------------------------------------------------- one by one


def _enumerated(value: Linear, conditions: list[UOp]) -> Steps:
    """Every iteration of the loops of some terms, if there are not too many."""
    loops: set[UOp] = set()
    for node in (*value.terms, *conditions):
        loops |= node.ranges
    ordered = sorted(loops, key=lambda r: r.axis)
    sizes = [_size(r) for r in ordered]
    is_fixed = all(r.src[0].op is CONST for r in ordered)
    if not is_fixed or prod(sizes) > MAX_ENUMERATED:
        raise Unproved("no rule says which elements are written")
    return _tried(value, conditions, ordered, sizes)


def _tried(value: Linear, conditions: list[UOp], loops: list[UOp], sizes: list[int]) -> Steps:
    if prod(sizes) > MAX_IN_PYTHON:
        return _tried_at_once(value, conditions, loops, sizes)
    total: list[int] = []
    for step in product(*map(range, sizes)):
        known: dict[UOp, Any] = dict(zip(loops, step, strict=True))
        if all(_evaluated(condition, known) for condition in conditions):
            total.append(sum([f * _evaluated(atom, known) for atom, f in value.terms.items()]))
    elements = sorted(set(total))
    if not elements:
        raise Unproved("a condition holds nowhere")
    is_once = len(total) == len(elements)
    apart = [after - before for before, after in pairwise(elements)] or [1]
    return Steps(gcd(*apart), max(apart), elements[0], elements[-1], is_once)


def _tried_at_once(
    value: Linear, conditions: list[UOp], loops: list[UOp], sizes: list[int]
) -> Steps:
    import numpy  # hardly any kernel comes here, and importing it takes 100 ms

    grid = numpy.indices(sizes).reshape(len(sizes), -1)
    known = dict(zip(loops, grid, strict=True))
    total = numpy.zeros(grid.shape[1], numpy.int64)
    for atom, factor in value.terms.items():
        total = total + factor * _evaluated(atom, known)
    for condition in conditions:
        holds = _evaluated(condition, known)
        total, known = total[holds], {node: found[holds] for node, found in known.items()}
    elements = numpy.unique(total)
    if len(elements) == 0:
        raise Unproved("a condition holds nowhere")
    low, high = int(elements[0]), int(elements[-1])
    if len(elements) == 1:
        return Steps(1, 1, low, high, len(total) == 1)
    apart = numpy.diff(elements)
    return Steps(
        int(numpy.gcd.reduce(apart)), int(apart.max()), low, high, len(total) == len(elements)
    )


def _evaluated(node: UOp, known: dict[UOp, Any]) -> Any:
    found = known.get(node)
    if found is None:
        if node.op is CONST:
            return node.arg
        if node.op not in ARITHMETIC:
            raise Unproved("an index is not made of loops alone")
        found = ARITHMETIC[node.op](*[_evaluated(source, known) for source in node.src])
        known[node] = found
    return found


def _smaller(left: Any, right: Any) -> Any:
    return left * (left < right) + right * (left >= right)


ARITHMETIC: dict[Ops, Callable[..., Any]] = {
    Ops.ADD: operator.add,
    Ops.SUB: operator.sub,
    Ops.MUL: operator.mul,
    Ops.NEG: operator.neg,
    Ops.FLOORDIV: operator.floordiv,
    Ops.FLOORMOD: operator.mod,
    Ops.MIN: _smaller,
    Ops.CMPLT: operator.lt,
    Ops.CMPEQ: operator.eq,
    Ops.CMPNE: operator.ne,
    Ops.AND: operator.and_,
    Ops.OR: operator.or_,
}
