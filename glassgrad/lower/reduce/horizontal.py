"""Vectors -> the sum of the lanes of each: several together, so that each step adds whole vectors.

Two vectors become one that holds pairwise sums of both; after log(lanes) such steps lane i is the
sum of vector i. Eight vectors of eight lanes take 7 additions instead of 56.
"""

from __future__ import annotations

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.lower.memory.transpose import SHUFFLE_BYTES
from glassgrad.lower.scope import Scopes

MIN_VECTORS_TO_SHUFFLE = 3  # below this many vectors, shuffles cost more than scalar additions
# ops that also compare with nan: for these, shuffling pays for a single vector
EXPENSIVE_OPS = frozenset((Ops.MAX, Ops.MIN))


def combine_lanes(scopes: Scopes, op: Ops, vectors: list[UOp]) -> list[UOp]:
    """For each vector: all of its lanes combined by `op`, neighbours first."""
    count = vectors[0].dtype.count
    results: list[UOp] = []
    for start in range(0, len(vectors), count):
        group = vectors[start : start + count]
        are_few = len(group) < MIN_VECTORS_TO_SHUFFLE and op not in EXPENSIVE_OPS
        if are_few or count & (count - 1):
            results += [
                combine_pairwise(scopes, op, _elements(scopes, vector, count)) for vector in group
            ]
        else:
            results += _elements(scopes, _combine_into_lanes(scopes, op, group), len(group))
    return results


def combine_pairwise(scopes: Scopes, op: Ops, values: list[UOp]) -> UOp:
    """Pairs, then pairs of pairs: a tree has shorter dependency chains."""
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=False)
        found = [scopes.emit(UOp(op, a.dtype, (a, b))) for a, b in pairs]
        values = found + (values[-1:] if len(values) % 2 else [])
    return values[0]


def _elements(scopes: Scopes, vector: UOp, count: int) -> list[UOp]:
    scalar = vector.dtype.scalar
    return [scopes.emit(UOp(Ops.GEP, scalar, (vector,), i)) for i in range(count)]


def _combine_into_lanes(scopes: Scopes, op: Ops, group: list[UOp]) -> UOp:
    """A vector whose lane i combines the lanes of vector i; fewer vectors are repeated.

    First neighbours within the parts that one shuffle can reach, then whole parts.
    """
    count = group[0].dtype.count
    part_size = min(count, SHUFFLE_BYTES // group[0].dtype.scalar.itemsize)
    vectors = [group[i % len(group)] for i in range(count)]
    while len(vectors) > 1:
        is_near = len(vectors) * part_size > count
        piece, part = (1, part_size) if is_near else (part_size, count)
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [_combine_neighbours(scopes, op, a, b, piece, part) for a, b in pairs]
    return vectors[0]


def _combine_neighbours(scopes: Scopes, op: Ops, a: UOp, b: UOp, piece: int, part: int) -> UOp:
    """a0 a1 a2 a3, b0 b1 b2 b3 -> a0+a1 a2+a3 b0+b1 b2+b3, within each part"""
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
