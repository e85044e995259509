"""Bounds proofs: is every index inside its buffer, given the bounds of ranges and gates?"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from glassgrad.ir.divmod import conjunction, conjuncts, is_upper_bound, within
from glassgrad.ir.linear import Linear, linear
from glassgrad.ir.ops import Ops
from glassgrad.ir.traverse import transform
from glassgrad.ir.uop import UOp


class Fact(NamedTuple):
    """Where the gate is open, a sum (without its constant) is at most `largest`."""

    terms: frozenset[tuple[UOp, int]]
    largest: int


def unproved_indices(body: UOp) -> list[UOp]:
    """Every INDEX under this node that is not proved to be inside its buffer."""
    return [node for node in body.toposort() if node.op is Ops.INDEX and not is_in_bounds(node)]


def guard_unproved(body: UOp) -> UOp:
    """Add explicit bounds checks to the gates of such INDEXes."""
    wanted = set(unproved_indices(body))
    if not wanted:
        return body
    return transform(body, lambda node, rebuilt: _guarded(rebuilt) if node in wanted else rebuilt)


def _guarded(index: UOp) -> UOp:
    pairs = zip(index.indices, _shape(index.src[0]), strict=True)
    inside = tuple([c for i, n in pairs for c in within(i, 0, n)])
    own = () if index.gate is None else (index.gate,)
    return index.src[0].index(*index.indices, gate=conjunction((*own, *inside)))


def is_in_bounds(index: UOp) -> bool:
    """True if every index of this INDEX is proved to be inside of the shape wherever its gate is
    open.
    """
    shape = _shape(index.src[0])
    if index.gate is not None and index.gate.is_const and not index.gate.arg:
        return True
    if all(0 <= i.vmin and i.vmax < n for i, n in zip(index.indices, shape, strict=True)):
        return True
    facts = _facts(index.gate)
    for i, n in zip(index.indices, shape, strict=True):
        low, high = bounds_under(i, facts)
        if low < 0 or high >= n:
            return False
    return True


def _shape(buffer: UOp) -> tuple[int, ...]:
    if buffer.op is Ops.STORE:
        return _shape(buffer.buffer)
    return tuple(buffer.arg.shape if buffer.op is Ops.PARAM else buffer.arg)


def _facts(gate: UOp | None) -> list[Fact]:
    """What an open gate implies: a gate is an AND of comparisons `sum < constant`."""
    found: list[Fact] = []
    for node in conjuncts(gate):
        if is_upper_bound(node):
            terms, constant = linear(node.src[0])
            found.append(Fact(frozenset(terms.items()), node.src[1].arg - 1 - constant))
    return found


def bounds_under(node: UOp, facts: list[Fact]) -> tuple[float, float]:
    """(smallest, largest) value of an index expression where all the facts hold."""
    value = linear(node)
    low = high = float(value.constant)
    for atom, factor in value.terms.items():
        least, largest = _atom_bounds(atom, facts)
        low += min(factor * least, factor * largest)
        high += max(factor * least, factor * largest)
    for fact in facts:
        factor = _multiple(value, fact)
        if factor > 0:
            high = min(high, factor * fact.largest + value.constant)
        elif factor < 0:
            low = max(low, factor * fact.largest + value.constant)
    return low, high


def _multiple(value: Linear, fact: Fact) -> int:
    """The factor by which a value is a multiple of the fact's sum, without constants; 0 if it is
    none.
    """
    if len(value.terms) != len(fact.terms):
        return 0
    factors = {
        value.terms[atom] // c if value.terms.get(atom, 0) % c == 0 and atom in value.terms else 0
        for atom, c in fact.terms
    }
    return factors.pop() if len(factors) == 1 else 0


def _atom_bounds(atom: UOp, facts: list[Fact]) -> tuple[float, float]:
    if atom.op is Ops.FLOORDIV and atom.src[1].is_const and atom.src[1].arg > 0:
        low, high = bounds_under(atom.src[0], facts)
        divisor = atom.src[1].arg
        return _floor(low, divisor), _floor(high, divisor)
    if atom.op is Ops.MIN:
        first, second = [bounds_under(source, facts) for source in atom.src]
        return min(first[0], second[0]), min(first[1], second[1])
    low, high = (float(bound) for bound in atom.bounds)
    for fact in facts:
        if len(fact.terms) == 1:
            ((found, factor),) = fact.terms
            if found is atom and factor > 0:
                high = min(high, fact.largest // factor)
            elif found is atom:
                low = max(low, -(fact.largest // -factor))
    return low, high


def _floor(value: float, divisor: int) -> float:
    return value if value in (inf, -inf) else float(value // divisor)
