"""Vectors -> the sum of each one's lanes: several together, so that every step adds whole vectors.

Two vectors become one that holds the sums of neighbours of both; when all lanes of as many vectors
are joined so, lane i is the sum of vector i. Eight vectors of eight take 7 additions, not 56.
"""

from __future__ import annotations

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.lower.memory.transpose import SHUFFLE_BYTES
from glassgrad.lower.scope import Scopes

MIN_VECTORS_TO_SHUFFLE = 3  # vectors that are worth exchanging elements between them
EXPENSIVE_OPS = frozenset((Ops.MAX, Ops.MIN))  # they look for nan as well: one vector is enough


def combine_lanes(scopes: Scopes, op: Ops, vectors: list[UOp]) -> list[UOp]:
    """For every vector: all of its lanes, joined by `op`, neighbours first."""
    count = vectors[0].dtype.count
    done: list[UOp] = []
    for start in range(0, len(vectors), count):
        group = vectors[start : start + count]
        are_few = len(group) < MIN_VECTORS_TO_SHUFFLE and op not in EXPENSIVE_OPS
        if are_few or count & (count - 1):
            done += [
                combine_pairwise(scopes, op, _elements(scopes, vector, count)) for vector in group
            ]
        else:
            done += _elements(scopes, _combine_into_lanes(scopes, op, group), len(group))
    return done


def combine_pairwise(scopes: Scopes, op: Ops, values: list[UOp]) -> UOp:
    """Pairs first, then pairs of pairs: short chains."""
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=False)
        found = [scopes.emit(UOp(op, a.dtype, (a, b))) for a, b in pairs]
        values = found + (values[-1:] if len(values) % 2 else [])
    return values[0]


def _elements(scopes: Scopes, vector: UOp, count: int) -> list[UOp]:
    scalar = vector.dtype.scalar
    return [scopes.emit(UOp(Ops.GEP, scalar, (vector,), i)) for i in range(count)]


def _combine_into_lanes(scopes: Scopes, op: Ops, group: list[UOp]) -> UOp:
    """A vector whose lane i is the sum of vector i; where there are fewer, they come round again.

    First neighbours within the parts that every machine reaches into in one step, then parts.
    """
    count = group[0].dtype.count
    near = min(count, SHUFFLE_BYTES // group[0].dtype.scalar.itemsize)
    vectors = [group[i % len(group)] for i in range(count)]
    while len(vectors) > 1:
        is_near = len(vectors) * near > count
        piece, part = (1, near) if is_near else (near, count)
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [_combine_neighbours(scopes, op, a, b, piece, part) for a, b in pairs]
    return vectors[0]


def _combine_neighbours(scopes: Scopes, op: Ops, a: UOp, b: UOp, piece: int, part: int) -> UOp:
    """a0 a1 a2 a3, b0 b1 b2 b3  ->  a0+a1 a2+a3 b0+b1 b2+b3, within each part"""
    count = a.dtype.count
    even, odd = (
        [
            row * count + at + within + i
            for at in range(0, count, part)
            for row in (0, 1)
            for within in range(start, part, 2 * piece)
            for i in range(piece)
        ]
        for start in (0, piece)
    )
    halves = [scopes.emit(UOp(Ops.SHUFFLE, a.dtype, (a, b), tuple(order))) for order in (even, odd)]
    return scopes.emit(UOp(op, a.dtype, tuple(halves)))
