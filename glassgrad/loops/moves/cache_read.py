"""CACHE_READ: copy the footprint of a buffer under a loop into scratch.

PACK copies in reading order, once per reader. Where reads overlap, as in a convolution, CACHE_READ
copies every element once and writes the zeros of the padding.
"""

from __future__ import annotations

from math import inf, prod
from typing import Any

from glassgrad.base.fast_dataclasses import frozen, replace
from glassgrad.ir.divmod import conjunction, conjuncts, is_upper_bound, less
from glassgrad.ir.linear import ZERO, Linear, add, build, linear, scale, sub
from glassgrad.ir.ops import Ops
from glassgrad.ir.proof import guard_unproved
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp, make_range
from glassgrad.loops.moves.pack import MAX_SCRATCH_BYTES, loads_under, packed_value
from glassgrad.loops.nest import enclosing_loops, next_axis_number
from glassgrad.loops.opts import IllegalMove

Loops = set[UOp]


@frozen
class Coordinate:
    """One index of a load: the part given by enclosing loops, the part added by inner loops, and
    the range of the copy loop.
    """

    outer: UOp
    inner: UOp
    copy_range: UOp
    size: int

    @property
    def buffer_index(self) -> UOp:
        """The index that the copy reads in the buffer."""
        return add(self.outer, self.inner.vmin, self.copy_range)

    @property
    def scratch_index(self) -> UOp:
        """The index that inner loops read in the copy."""
        return sub(self.inner, self.inner.vmin)


def cache_read(nest: Nest, axis: UOp, arg: Any, target: Target) -> Nest:
    """for i: for k: y += x[i + k]  ->  for i: s[:] = x[i : i + n]; for k: y += s[k]

    `arg` is a slot, or a slot and the order of the copy's axes.
    """
    slot, order = arg if isinstance(arg, tuple) else (arg, None)
    if axis.kind.is_unrolled or target.has_threads:
        raise IllegalMove("scratch needs a loop that is not unrolled, on a target without threads")
    around = enclosing_loops(nest, axis)
    replaced: dict[UOp, UOp] = {}
    number = next_axis_number(nest)
    for load in loads_under(nest, axis, slot):
        value = packed_value(nest, load, target)
        replaced[value] = _cache_load(load, value, around, number, order)
        number += len(load.src[0].indices)
    if not replaced:
        raise IllegalMove(f"no load of argument {slot} depends on a loop inside axis {axis.axis}")
    return replace(nest, body=nest.body.substitute(replaced))


def footprint_size(nest: Nest, axis: UOp, slot: int) -> float:
    """The number of elements that the move would copy per iteration of `axis`."""
    around = enclosing_loops(nest, axis)
    return sum(elements_read(load.src[0], around) for load in loads_under(nest, axis, slot))


def elements_read(index: UOp, around: Loops) -> float:
    """The size of the box that a load covers inside `around`; infinite if its indices are not
    separable.
    """
    try:
        inners = [_split_index(i, around)[1] for i in index.indices]
    except IllegalMove:
        return inf
    return float(prod(inner.vmax - inner.vmin + 1 for inner in inners))


def _cache_load(
    load: UOp, value: UOp, around: Loops, number: int, order: tuple[int, ...] | None
) -> UOp:
    index, dtype = load.src[0], value.dtype
    coordinates = [_coordinate(i, around, number + n) for n, i in enumerate(index.indices)]
    if order is not None and sorted(order) != list(range(len(coordinates))):
        raise IllegalMove(f"{order} is not a permutation of {len(coordinates)} axes")
    ordered = coordinates if order is None else [coordinates[i] for i in order]
    shape = tuple([coordinate.size for coordinate in ordered])
    if prod(shape) * dtype.itemsize > MAX_SCRATCH_BYTES or prod(shape) == 1:
        raise IllegalMove(
            f"a footprint of {shape} is one element or exceeds {MAX_SCRATCH_BYTES} bytes"
        )
    gate = _gate_of_copy(index.gate, coordinates, around)
    read = index.src[0].index(*[coordinate.buffer_index for coordinate in coordinates], gate=gate)
    copy = value.substitute({load: guard_unproved(read.load())})
    # in the memory order of the buffer
    ranges = [
        coordinate.copy_range for coordinate in coordinates if coordinate.copy_range is not ZERO
    ]
    stage = UOp(
        Ops.STAGE, dtype, (copy, *[coordinate.copy_range for coordinate in ordered], *ranges), shape
    )
    return stage.index(*[coordinate.scratch_index for coordinate in ordered]).load()


def _coordinate(index: UOp, around: Loops, number: int) -> Coordinate:
    outer, inner = _split_index(index, around)
    size = inner.vmax - inner.vmin + 1
    return Coordinate(outer, inner, ZERO if size == 1 else make_range(number, size), size)


def _split_index(index: UOp, around: Loops) -> tuple[UOp, UOp]:
    """The terms of an index given by enclosing loops (with the constant), and those of inner
    loops.
    """
    terms, constant = linear(index)
    outer: dict[UOp, int] = {}
    inner: dict[UOp, int] = {}
    for atom, factor in terms.items():
        if atom.ranges <= around and atom.op is not Ops.CAST:
            outer[atom] = factor
        elif atom.ranges.isdisjoint(around) and atom.ranges:
            inner[atom] = factor
        else:
            raise IllegalMove(
                "an index term mixes inner loops with enclosing loops or loaded values"
            )
    return build(Linear(outer, constant)), build(Linear(inner, 0))


def _gate_of_copy(gate: UOp | None, coordinates: list[Coordinate], around: Loops) -> UOp | None:
    """The conditions of the load, expressed over the ranges of the copy."""
    conditions: list[UOp] = []
    for node in conjuncts(gate):
        if node.ranges <= around:
            conditions.append(node)
        elif is_upper_bound(node):
            outer, inner = _split_index(node.src[0], around)
            conditions.append(
                less(add(outer, _condition_on_copy(inner, coordinates)), node.src[1].arg)
            )
        else:
            raise IllegalMove("a condition of the load is not an inequality over its indices")
    return conjunction(tuple([c for c in conditions if not (c.is_const and c.arg)]))


def _condition_on_copy(inner: UOp, coordinates: list[Coordinate]) -> UOp:
    """A sum over inner loops as plus or minus one coordinate of the copy."""
    for coordinate in coordinates:
        for sign in (1, -1):
            if inner is scale(coordinate.inner, sign) and coordinate.copy_range is not ZERO:
                return scale(add(coordinate.copy_range, coordinate.inner.vmin), sign)
    raise IllegalMove("a condition of the load involves more than one coordinate")
