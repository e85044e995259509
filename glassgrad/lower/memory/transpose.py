"""LOADs with strided lanes -> vector loads along memory, transposed in registers.

Where lanes are a row apart and registers are adjacent, the loads read a block of a matrix by
columns: its rows are loaded as vectors and shuffled into columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.uop import UOp
from glassgrad.lower.scope import Scopes

if TYPE_CHECKING:
    from glassgrad.lower.emit import Emitter, UnrollCopy

SHUFFLE_BYTES = 16  # every machine shuffles freely within this many bytes in one instruction


def find_transposed_axis(emitter: Emitter, node: UOp, copy: UnrollCopy, lane: UOp) -> UOp | None:
    """The unrolled axis along which this LOAD is contiguous, if whole blocks can be transposed."""
    if node.src[0].gate is not None or emitter.may_alias:
        return None
    if lane.size & (lane.size - 1) or 2 * lane.size > emitter.target.registers:
        return None
    terms, _ = emitter.flat(node.src[0])
    for atom, factor in terms.items():
        is_register = atom.kind is AxisKind.UPCAST if atom.op is Ops.RANGE else False
        if (
            is_register
            and factor == 1
            and copy.get(atom, inf) < _registers_in_whole_blocks(atom, lane)
        ):
            inside = [a for a in terms if a is not atom and atom in a.ranges]
            return None if inside else atom
    return None


def _registers_in_whole_blocks(axis: UOp, lane: UOp) -> int:
    """The number of registers that form whole blocks."""
    return axis.size // lane.size * lane.size


def find_interleaved_axis(
    emitter: Emitter, index: UOp, ranges: Sequence[UOp], lane: UOp
) -> UOp | None:
    """The unrolled axis whose registers write between each other's lanes: 0 4 8 12, 1 5 9 13, …"""
    terms, _ = emitter.flat(index)
    for r in ranges:
        if r.kind is AxisKind.UPCAST and terms.get(r) == 1 and terms.get(lane) == r.size:
            mixed = [a for a in terms if a.op is not Ops.RANGE and a.ranges & {r, lane}]
            is_power = r.size & (r.size - 1) == 0
            return r if is_power and not mixed and index.gate is None else None
    return None


def interleave_lanes(scopes: Scopes, vectors: list[UOp]) -> list[UOp]:
    """a0 a1, b0 b1 -> a0 b0, a1 b1: the elements of all vectors, alternating"""
    if len(vectors) == 1:
        return vectors
    count = vectors[0].dtype.count
    even, odd = interleave_lanes(scopes, vectors[::2]), interleave_lanes(scopes, vectors[1::2])
    results: list[UOp] = []
    for one, two in zip(even, odd, strict=True):
        for start in (0, count // 2):
            order = [i + start + row * count for i in range(count // 2) for row in (0, 1)]
            results.append(_shuffle(scopes, one, two, order))
    return results


def transpose_registers(scopes: Scopes, rows: Sequence[UOp]) -> list[UOp]:
    """a0 a1, b0 b1  ->  a0 b0, a1 b1: a transpose

    First within the parts of vectors that one shuffle can reach, then by exchanging parts.
    """
    count = len(rows)
    part_size = min(count, SHUFFLE_BYTES // rows[0].dtype.scalar.itemsize)
    groups = [
        _interleave_pieces(scopes, rows[i : i + part_size], 1, part_size)
        for i in range(0, count, part_size)
    ]
    columns = [[group[i] for group in groups] for i in range(part_size)]
    distance = 1
    while distance * part_size < count:
        columns = [_exchange_parts(scopes, column, distance, part_size) for column in columns]
        distance *= 2
    return [columns[i][part] for part in range(count // part_size) for i in range(part_size)]


def _interleave_pieces(scopes: Scopes, rows: Sequence[UOp], size: int, part_size: int) -> list[UOp]:
    """Alternating pieces of `size` elements from two rows, for either half of each part."""
    if len(rows) == 1:
        return list(rows)
    count, half = rows[0].dtype.count, part_size // 2
    halves: list[list[UOp]] = []
    for start in (0, half):
        order = [
            part + start + piece + row * count + i
            for part in range(0, count, part_size)
            for piece in range(0, half, size)
            for row in (0, 1)
            for i in range(size)
        ]
        pairs = zip(rows[::2], rows[1::2], strict=True)
        halves.append([_shuffle(scopes, one, two, order) for one, two in pairs])
    return [row for half in halves for row in _interleave_pieces(scopes, half, size * 2, part_size)]


def _exchange_parts(scopes: Scopes, vectors: list[UOp], distance: int, part_size: int) -> list[UOp]:
    """Exchange parts between the vectors of each pair that is `distance` apart."""
    results, count = list(vectors), vectors[0].dtype.count
    parts = range(len(vectors))
    first = [count + (p - distance) * part_size if p & distance else p * part_size for p in parts]
    second = [count + p * part_size if p & distance else (p + distance) * part_size for p in parts]
    for low in parts:
        if not low & distance:
            pair = vectors[low], vectors[low + distance]
            for target, starts in ((low, first), (low + distance, second)):
                order = [start + i for start in starts for i in range(part_size)]
                results[target] = _shuffle(scopes, *pair, order)
    return results


def _shuffle(scopes: Scopes, one: UOp, two: UOp, order: list[int]) -> UOp:
    return scopes.emit(UOp(Ops.SHUFFLE, one.dtype, (one, two), tuple(order)))
