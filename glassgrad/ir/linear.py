"""Index expressions as sums: a linear combination of atoms plus a constant, in canonical form.

An atom is anything but a sum: a RANGE, a VARIABLE, a quotient, a remainder, a MIN, a loaded index.
All functions take and return UOps of dtype index; equal sums are the same node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, const

ADD, MUL, SUB, NEG, CONST = Ops.ADD, Ops.MUL, Ops.SUB, Ops.NEG, Ops.CONST
FLOORDIV, FLOORMOD, MIN, RANGE = Ops.FLOORDIV, Ops.FLOORMOD, Ops.MIN, Ops.RANGE
VARIABLE = Ops.VARIABLE
INDEX_DTYPE = dtypes.index


class Linear(NamedTuple):
    """Σ coefficient·atom + constant. No coefficient is 0; the terms are never changed."""

    terms: Mapping[UOp, int]
    constant: int


ZERO = const(0)


def linear(node: UOp) -> Linear:
    """A canonical index expression as a sum."""
    found = node._linear
    if found is None:
        found = node._linear = _read(node)
    return found  # type: ignore[no-any-return]


def _read(node: UOp) -> Linear:
    op = node.op
    if op is CONST:
        return Linear({}, node.arg)
    if op is ADD:
        return plus(linear(node.src[0]), linear(node.src[1]))
    if op is SUB:
        return plus(linear(node.src[0]), linear(node.src[1]), -1)
    if op is MUL and node.src[1].op is CONST:
        return _times(linear(node.src[0]), node.src[1].arg)
    if op is NEG:
        return _times(linear(node.src[0]), -1)
    return Linear({node: 1}, 0)


def plus(left: Linear, right: Linear, factor: int = 1) -> Linear:
    """left + factor·right"""
    terms = dict(left.terms)
    for atom, coefficient in right.terms.items():
        total = terms.get(atom, 0) + factor * coefficient
        if total:
            terms[atom] = total
        else:
            del terms[atom]
    return Linear(terms, left.constant + factor * right.constant)


def _times(value: Linear, factor: int) -> Linear:
    if factor == 0:
        return Linear({}, 0)
    terms = {atom: coefficient * factor for atom, coefficient in value.terms.items()}
    return Linear(terms, value.constant * factor)


def order(node: UOp) -> tuple[Any, ...]:
    """A sort key that depends on structure only, so that equal kernels are equal in every
    process.
    """
    if node._order is None:
        if node.op is RANGE:
            node._order = (0, node.arg[0])
        elif node.op is VARIABLE:
            node._order = (1, node.arg[0])
        elif node.op is CONST:
            node._order = (2, str(node.arg))
        else:
            below = tuple([order(source) for source in node.src])
            node._order = (3, int(node.op), len(below), below, repr(node.arg))
    return node._order


def build(value: Linear) -> UOp:
    """The canonical expression of a sum: atoms in order, the constant last."""
    terms, constant = _recombine(value)
    if not terms:
        return const(constant)
    atoms = sorted(terms, key=order) if len(terms) > 1 else terms
    result: UOp | None = None
    for atom in atoms:
        coefficient = terms[atom]
        term = atom if coefficient == 1 else UOp(MUL, INDEX_DTYPE, (atom, const(coefficient)))
        result = term if result is None else UOp(ADD, INDEX_DTYPE, (result, term))
    assert result is not None
    if constant:
        result = UOp(ADD, INDEX_DTYPE, (result, const(constant)))
    if result._linear is None:
        result._linear = Linear(terms, constant)
    return result


def _recombine(value: Linear) -> Linear:
    """k·d·(x // d) + k·(y % d)  ->  k·x, where x and y have the same remainder modulo d"""
    for atom, factor in value.terms.items():
        if atom.op is not FLOORMOD or atom.src[1].op is not CONST:
            continue
        divisor = atom.src[1].arg
        wanted = factor * divisor
        for whole, quotient in _quotients(value, atom.src[0], divisor, wanted):
            if quotient.terms and all(
                value.terms.get(part) == wanted * coefficient
                for part, coefficient in quotient.terms.items()
            ):
                rest = plus(value, Linear({atom: 1}, 0), -factor)
                rest = plus(rest, quotient, -wanted)
                return _recombine(plus(rest, whole, factor))
    return value


def _quotients(
    value: Linear, inner: UOp, divisor: int, wanted: int
) -> Iterator[tuple[Linear, Linear]]:
    """Candidates for the dividend: x, and x // d as a sum."""
    from glassgrad.ir.divmod import floordiv

    yield linear(inner), linear(floordiv(inner, divisor))
    for atom, factor in value.terms.items():
        if atom.op is FLOORDIV and factor == wanted and atom.src[1].op is CONST:
            whole = linear(atom.src[0])
            remainder = plus(whole, linear(inner), -1)
            steps = (remainder.constant, *remainder.terms.values())
            if atom.src[1].arg == divisor and all(step % divisor == 0 for step in steps):
                yield whole, Linear({atom: 1}, 0)


def add(*values: UOp | int) -> UOp:
    """The sum of index expressions and ints."""
    total = Linear({}, 0)
    for value in values:
        total = plus(total, _as_linear(value))
    return build(total)


def sub(left: UOp, right: UOp | int) -> UOp:
    return build(plus(linear(left), _as_linear(right), -1))


def _as_linear(value: UOp | int) -> Linear:
    """A sum; a Size (ir/size.py) is an int that knows its expression."""
    if isinstance(value, int):
        uop = getattr(value, "uop", None)
        return Linear({}, value) if uop is None else linear(uop)
    return linear(value)


def scale(value: UOp, factor: int) -> UOp:
    """value * factor"""
    return value if factor == 1 else build(_times(linear(value), factor))


def mul(left: UOp, right: UOp) -> UOp:
    """The product; one factor should be a constant, otherwise the product is an atom."""
    if right.op is CONST:
        return scale(left, right.arg)
    if left.op is CONST:
        return scale(right, left.arg)
    first, second = sorted((left, right), key=order)
    return UOp(MUL, INDEX_DTYPE, (first, second))


def minimum(left: UOp, right: UOp) -> UOp:
    if left.vmax <= right.vmin:
        return left
    if right.vmax <= left.vmin:
        return right
    return UOp(MIN, INDEX_DTYPE, (left, right))


def maximum(left: UOp, right: UOp) -> UOp:
    return sub(left, minimum(sub(left, right), ZERO))


def total(indices: tuple[UOp, ...], strides: tuple[int, ...]) -> UOp:
    """Σ index·stride: the flat address."""
    return build(_summed(indices, strides))


def flat(indices: tuple[UOp, ...], strides: tuple[int, ...]) -> Linear:
    """The flat address as a sum, without creating an expression."""
    return _recombine(_summed(indices, strides))


def without_remainders(value: Linear) -> Linear:
    """a·(x // d) + b·(x % d)  ->  b·x + (a - b·d)·(x // d): one division instead of two"""
    for atom, factor in value.terms.items():
        if atom.op is FLOORMOD:
            quotient = UOp(FLOORDIV, atom.dtype, atom.src)
            if quotient in value.terms:
                rest = plus(value, Linear({atom: 1}, 0), -factor)
                rest = plus(rest, linear(atom.src[0]), factor)
                remainder = Linear({quotient: 1}, 0)
                return without_remainders(plus(rest, remainder, -factor * atom.src[1].arg))
    return value


def _summed(indices: tuple[UOp, ...], strides: tuple[int, ...]) -> Linear:
    terms: dict[UOp, int] = {}
    constant = 0
    for index, stride in zip(indices, strides, strict=True):
        found = linear(index)
        constant += found.constant * stride
        for atom, coefficient in found.terms.items():
            terms[atom] = terms.get(atom, 0) + coefficient * stride
    if 0 in terms.values():
        terms = {atom: coefficient for atom, coefficient in terms.items() if coefficient}
    return Linear(terms, constant)
