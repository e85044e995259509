"""Is every index inside its buffer? Proved from the bounds of ranges and from what gates say."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from glassgrad.ir.divmod import all_of, conditions_of, is_limit, within
from glassgrad.ir.facts import rebuilt
from glassgrad.ir.linear import Linear, linear
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp


class Fact(NamedTuple):
    """A sum without its constant is at most this, where the gate is open."""

    terms: frozenset[tuple[UOp, int]]
    most: int


def unproved(body: UOp) -> list[UOp]:
    """Every INDEX under this node that might leave its buffer, for all we can prove."""
    return [node for node in body.toposort() if node.op is Ops.INDEX and not lies_inside(node)]


def guard_unproved(body: UOp) -> UOp:
    """The same, with the gate of each such INDEX asking in so many words whether it is inside."""
    wanted = set(unproved(body))
    done: dict[UOp, UOp] = {}
    for node in body.toposort() if wanted else ():
        same = rebuilt(node, done)  # what is read may be guarded, too
        done[node] = _guarded(same) if node in wanted else same
    return done.get(body, body)


def _guarded(index: UOp) -> UOp:
    places = zip(index.indices, _shape(index.src[0]), strict=True)
    inside = tuple([c for i, n in places for c in within(i, 0, n)])
    own = () if index.gate is None else (index.gate,)
    return index.src[0].index(*index.indices, gate=all_of((*own, *inside)))


def lies_inside(index: UOp) -> bool:
    """Wherever its gate is open, is every index of this INDEX at least 0 and less than the size?"""
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
    """What must hold for a gate to be open: it is an AND of comparisons `sum < constant`."""
    found: list[Fact] = []
    for node in conditions_of(gate):
        if is_limit(node):
            terms, constant = linear(node.src[0])
            found.append(Fact(frozenset(terms.items()), node.src[1].arg - 1 - constant))
    return found


def bounds_under(node: UOp, facts: list[Fact]) -> tuple[float, float]:
    """(smallest, largest) value of an index expression where all the facts hold."""
    value = linear(node)
    low = high = float(value.constant)
    for atom, factor in value.terms.items():
        least, most = _atom_bounds(atom, facts)
        low += min(factor * least, factor * most)
        high += max(factor * least, factor * most)
    for fact in facts:
        factor = _multiple(value, fact)
        if factor > 0:
            high = min(high, factor * fact.most + value.constant)
        elif factor < 0:
            low = max(low, factor * fact.most + value.constant)
    return low, high


def _multiple(value: Linear, fact: Fact) -> int:
    """How many times the fact's sum a value is, apart from its constant; 0 if it is not."""
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
                high = min(high, fact.most // factor)
            elif found is atom:
                low = max(low, -(fact.most // -factor))
    return low, high


def _floor(value: float, divisor: int) -> float:
    return value if value in (inf, -inf) else float(value // divisor)
