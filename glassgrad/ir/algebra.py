"""ALGEBRA: identities that hold exactly, bit for bit, for scalars of a kernel or program.

Numbers and dtypes differ: x * 0 is not 0 for nan, x + 0 is not x for -0.0, and sums of floats may
not be reordered. A row that relies on such an identity has integer variables (i, j) or a `when`.
tests/ir/test_algebra.py checks every row on every dtype it allows.

Graph values have shapes, which these rows do not preserve: they are not for the graph.
"""

from __future__ import annotations

import math

from glassgrad.base.dtype import FLOAT_LAYOUT, DType, dtypes
from glassgrad.base.rounding import round_float
from glassgrad.ir.fold import fold as value_of
from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.pattern import (
    Rule,
    Rules,
    c,
    d,
    f,
    fold,
    guard,
    i,
    j,
    node,
    p,
    positive,
    q,
    varying,
    x,
    y,
    z,
)
from glassgrad.ir.uop import UOp

FOLDED_UNARY = sorted(OpGroup.UNARY - {Ops.CAST, Ops.BITCAST})
FOLDED_BINARY = sorted(OpGroup.BINARY)
ASSOCIATIVE = (Ops.AND, Ops.OR, Ops.XOR, Ops.MAX, Ops.MIN)
IDEMPOTENT = (Ops.AND, Ops.OR, Ops.MAX, Ops.MIN)

unbounded = guard(lambda found: found.dtype.kind == "index", i)
fits = guard(lambda a, b: _fits(int(a.arg) * int(b.arg), a.dtype), c, d)
nonzero = guard(lambda found: found.arg != 0, c)
power_of_two = guard(lambda found: _is_power_of_two(found.arg, found.dtype), c)


def _fits(value: int, dtype: DType) -> bool:
    return dtype.kind == "index" or dtypes.min(dtype) <= value <= dtypes.max(dtype)


def _is_power_of_two(value: float, dtype: DType) -> bool:
    """True if value and 1/value are powers of two that the dtype represents."""
    if value == 0 or not math.isfinite(value) or abs(math.frexp(value)[0]) != 0.5:
        return False
    inverse = 1 / value
    return round_float(value, dtype) == value and round_float(inverse, dtype) == inverse != 0


ALGEBRA = Rules(
    "algebra",
    # constants are computed, and stand on the right
    *[Rule(node(op, c), fold(node(op, c))) for op in FOLDED_UNARY],
    *[Rule(node(op, c, d), fold(node(op, c, d)), ordered=True) for op in FOLDED_BINARY],
    *[
        Rule(node(op, c, x), node(op, x, c), when=varying(x), ordered=True)
        for op in sorted(OpGroup.COMMUTATIVE)
    ],
    # adding nothing
    Rule(i + 0, i),
    Rule(f + -0.0, f),
    Rule(x - 0, x),
    Rule(i | 0, i),
    Rule(i ^ 0, i),
    Rule(i << 0, i),
    Rule(i >> 0, i),
    # multiplying and dividing by one
    Rule(x * 1, x),
    Rule(f / 1, f),
    Rule(i // 1, i),
    Rule(i % 1, 0),
    Rule(node(Ops.CDIV, i, 1), i),
    Rule(node(Ops.CMOD, i, 1), 0),
    Rule(node(Ops.POW, f, 1), f),
    Rule(node(Ops.POW, f, 0), 1),
    Rule(f * -1, -f),
    Rule(i * -1, -i),
    # nothing is left
    Rule(i * 0, 0),
    Rule(i & 0, 0),
    Rule(i - i, 0),
    Rule(i ^ i, 0),
    Rule(node(Ops.FLOORDIV, 0, i), 0),
    Rule(node(Ops.FLOORMOD, 0, i), 0),
    # the same twice
    *[Rule(node(op, x, x), x) for op in IDEMPOTENT],
    *[Rule(node(op, node(op, x, y), y), node(op, x, y)) for op in IDEMPOTENT],
    Rule((i % c) % c, i % c),
    Rule(node(Ops.TRUNC, node(Ops.TRUNC, x)), node(Ops.TRUNC, x)),
    Rule(node(Ops.TRUNC, i), i),
    # signs
    Rule(-(-i), i),
    Rule(-(-f), f),
    Rule(i + (-j), i - j),
    Rule(f + (-y), f - y),
    Rule(i - (-j), i + j),
    Rule(f - (-y), f + y),
    Rule(-(i - j), j - i),
    Rule(node(Ops.SUB, 0, i), -i),
    Rule((-x) * (-y), x * y),
    Rule((-i) * c, i * fold(-c)),
    Rule((-f) * c, f * fold(-c)),
    Rule(-(i * c), i * fold(-c)),
    Rule(-(f * c), f * fold(-c)),
    # constants gather on the right
    Rule(i - c, i + fold(-c)),
    Rule(f - c, f + fold(-c)),
    Rule((i + c) + d, i + fold(c + d)),
    Rule((i + c) + j, (i + j) + c, when=varying(i, j)),
    Rule((i + c) - j, (i - j) + c, when=varying(i, j)),
    Rule(i - (j + c), (i - j) + fold(-c), when=varying(i, j)),
    Rule((i * c) * d, i * fold(c * d)),
    Rule((i + c) * d, i * d + fold(c * d), when=varying(i)),
    *[Rule(node(op, node(op, x, c), d), node(op, x, fold(node(op, c, d)))) for op in ASSOCIATIVE],
    Rule((i // c) // d, i // fold(c * d), when=positive(c, d) & fits),
    # equal terms
    Rule(i + i, i * 2),
    Rule(i * c + i, i * fold(c + 1)),
    Rule(i * c + i * d, i * fold(c + d)),
    Rule((i + j) - i, j),
    # quotients that are known
    Rule((i * c) // c, i, when=unbounded & nonzero),
    Rule((i * c) % c, 0, when=unbounded),
    Rule(f / c, f * fold(node(Ops.RECIPROCAL, c)), when=power_of_two),
    # comparisons of ints
    Rule(i < i, False),
    Rule(i.eq(i), True),
    Rule(i.ne(i), False),
    Rule((i + c).eq(d), i.eq(fold(d - c))),
    Rule((i + c).ne(d), i.ne(fold(d - c))),
    Rule((i + c) < d, i < fold(d - c), when=unbounded),
    # logic: comparing with True is how to say "not"
    Rule(p & True, p),
    Rule(p | False, p),
    Rule(p & False, False),
    Rule(p | True, True),
    Rule(p ^ False, p),
    Rule(p ^ True, p.ne(True)),
    Rule(p.ne(False), p),
    Rule(p.eq(True), p),
    Rule(p.eq(False), p.ne(True)),
    Rule(p.ne(True).ne(True), p),
    Rule(p ^ p, False),
    Rule(p.eq(p), True),
    Rule(p.ne(p), False),
    Rule(p & p.ne(True), False),
    Rule(p | p.ne(True), True),
    # choices
    Rule(node(Ops.WHERE, True, x, y), x),
    Rule(node(Ops.WHERE, False, x, y), y),
    Rule(p.where(x, x), x),
    Rule(p.where(True, False), p),
    Rule(p.where(False, True), p.ne(True)),
    Rule(p.ne(True).where(x, y), p.where(y, x)),
    Rule(p.where(p.where(x, y), z), p.where(x, z)),
    Rule(p.where(x, p.where(y, z)), p.where(x, z)),
    Rule(p.where(q.where(x, y), y), (p & q).where(x, y)),
    Rule(p.where(x, q.where(x, y)), (p | q).where(x, y)),
)


# ---------------------------------------------------------------------- conversions


@ALGEBRA.rule(Ops.CAST)
def simplify_cast(found: UOp) -> UOp | None:
    """cast(c)  ->  c'      cast(cast(x))  ->  cast(x) where the one in the middle loses nothing"""
    source = found.src[0]
    if source.dtype is found.dtype:
        return source
    if source.op is Ops.CONST:
        value = value_of(Ops.CAST, found.dtype, (source.arg,), source.dtype)
        return UOp(Ops.CONST, found.dtype, (), value)
    if source.op is Ops.CAST:
        first = source.src[0]
        if can_skip(first.dtype, source.dtype, found.dtype) or _stays(first, source.dtype):
            return first.cast(found.dtype)
    return None


def _stays(value: UOp, dtype: DType) -> bool:
    """True if the dtype represents every whole number that this node can be."""
    are_whole = dtypes.is_int(value.dtype) and dtypes.is_int(dtype)
    return are_whole and _fits(value.vmin, dtype) and _fits(value.vmax, dtype)


@ALGEBRA.rule(Ops.BITCAST)
def simplify_bitcast(found: UOp) -> UOp | None:
    """bitcast(c)  ->  c'      bitcast(bitcast(x))  ->  bitcast(x)"""
    source = found.src[0]
    if source.dtype is found.dtype:
        return source
    if source.op is Ops.BITCAST:
        return source.src[0].bitcast(found.dtype)
    if source.op is not Ops.CONST:
        return None
    value = value_of(Ops.BITCAST, found.dtype, (source.arg,), source.dtype)
    if source.arg != source.arg or value != value:  # which nan it is would be forgotten
        return None
    return UOp(Ops.CONST, found.dtype, (), value)


@ALGEBRA.rule(Ops.MULACC)
def fold_mulacc(found: UOp) -> UOp | None:
    """c * d + e  ->  e'"""
    if any(source.op is not Ops.CONST for source in found.src):
        return None
    value = value_of(Ops.MULACC, found.dtype, tuple([source.arg for source in found.src]))
    return UOp(Ops.CONST, found.dtype, (), value)


def can_skip(first: DType, middle: DType, last: DType) -> bool:
    """True if first -> middle -> last converts like first -> last.

    >>> can_skip(dtypes.uchar, dtypes.int, dtypes.float)
    True
    """
    if dtypes.is_int(first) and dtypes.is_int(middle) and dtypes.is_int(last):
        return last.bits <= middle.bits or is_lossless(first, middle)
    # Ints wrap and floats stay in range, so a float in the middle matters where the last is narrow.
    if middle.kind == "float" and first.kind != "float" and dtypes.is_int(last):
        return is_lossless(first, middle) and is_lossless(first, last)
    return is_lossless(first, middle)


def is_lossless(first: DType, second: DType) -> bool:
    """True if the second dtype represents every value of the first."""
    if first.kind == "bool" or first.scalar is second.scalar:
        return True
    if first.kind == "float":
        return second.kind == "float" and _holds_floats(first.scalar, second.scalar)
    if second.kind == "float":
        mantissa_bits = FLOAT_LAYOUT[second.scalar][1] + 1
        digits = first.bits - (first.kind != "uint")
        return digits <= mantissa_bits and 1 << digits <= _largest_exact(second.scalar)
    if second.kind == "bool":
        return False
    return dtypes.min(second) <= dtypes.min(first) and dtypes.max(first) <= dtypes.max(second)


def _holds_floats(first: DType, second: DType) -> bool:
    if first is dtypes.fp8e5m2 and second is dtypes.fp8e4m3:
        return False
    return all(a <= b for a, b in zip(FLOAT_LAYOUT[first], FLOAT_LAYOUT[second], strict=True))


def _largest_exact(dtype: DType) -> float:
    """Up to here a float dtype has room for every int that fits its mantissa."""
    return 256.0 if dtype is dtypes.fp8e4m3 else 2.0 ** ((1 << (FLOAT_LAYOUT[dtype][0] - 1)) - 1)
