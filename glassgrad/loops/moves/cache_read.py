"""WINDOW: the part of a buffer that loops inside of one loop read, copied into scratch.

STAGE copies what is read once per reader, in reading order; where readers overlap, as the windows
of a convolution do, WINDOW copies every element once, with the zeros around an image put in.
"""

from __future__ import annotations

from math import inf, prod
from typing import Any

from glassgrad.base.fast_dataclasses import frozen, replace
from glassgrad.ir.divmod import all_of, conditions_of, is_limit, less
from glassgrad.ir.linear import ZERO, Linear, add, build, linear, scale, sub
from glassgrad.ir.ops import Ops
from glassgrad.ir.proof import guard_unproved
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp, make_range
from glassgrad.loops.moves.pack import MOST_BYTES, converted, loads_inside, loops_around
from glassgrad.loops.nest import next_number
from glassgrad.loops.opts import IllegalMove

Around = set[UOp]


@frozen
class Coordinate:
    """One index of a load: what the loops around give, what those inside add, a range over that."""

    outer: UOp
    inner: UOp
    fresh: UOp
    size: int

    @property
    def place(self) -> UOp:
        """Where in the buffer the copy reads."""
        return add(self.outer, self.inner.vmin, self.fresh)

    @property
    def within(self) -> UOp:
        """Where in the copy the loops inside read."""
        return sub(self.inner, self.inner.vmin)


def window(nest: Nest, axis: UOp, arg: Any, target: Target) -> Nest:
    """for i: for k: y += x[i + k]  ->  for i: s[:] = x[i : i + n]; for k: y += s[k]

    `arg` is a slot; or a slot and an order, in which the copy has its axes.
    """
    slot, order = arg if isinstance(arg, tuple) else (arg, None)
    if axis.kind.is_unrolled or target.has_threads:
        raise IllegalMove("scratch is filled inside of a loop over cores, blocks or elements")
    around = loops_around(nest, axis)
    made: dict[UOp, UOp] = {}
    number = next_number(nest)
    for load in loads_inside(nest, axis, slot):
        value = converted(nest, load, target)
        made[value] = _windowed(load, value, around, number, order)
        number += len(load.src[0].indices)
    if not made:
        raise IllegalMove(f"nothing of argument {slot} is read inside of axis {axis.axis}")
    return replace(nest, body=nest.body.substitute(made))


def window_size(nest: Nest, axis: UOp, slot: int) -> float:
    """How many elements the move would copy at a time."""
    around = loops_around(nest, axis)
    return sum(elements_read(load.src[0], around) for load in loads_inside(nest, axis, slot))


def elements_read(index: UOp, around: Around) -> float:
    """How many elements a load reads inside of these loops, with those that lie between them;
    infinitely many if they are no window.
    """
    try:
        inners = [_parted(i, around)[1] for i in index.indices]
    except IllegalMove:
        return inf
    return float(prod(inner.vmax - inner.vmin + 1 for inner in inners))


def _windowed(
    load: UOp, value: UOp, around: Around, number: int, order: tuple[int, ...] | None
) -> UOp:
    index, dtype = load.src[0], value.dtype
    places = [_coordinate(i, around, number + n) for n, i in enumerate(index.indices)]
    if order is not None and sorted(order) != list(range(len(places))):
        raise IllegalMove(f"{order} is no order of {len(places)} axes")
    turned = places if order is None else [places[i] for i in order]
    shape = tuple([place.size for place in turned])
    if prod(shape) * dtype.itemsize > MOST_BYTES or prod(shape) == 1:
        raise IllegalMove(f"a window of {shape} is too large, or one element")
    gate = _moved_gate(index.gate, places, around)
    read = index.src[0].index(*[place.place for place in places], gate=gate)
    copy = value.substitute({load: guard_unproved(read.load())})
    ranges = [place.fresh for place in places if place.fresh is not ZERO]  # as memory lies
    kept = UOp(Ops.STAGE, dtype, (copy, *[place.fresh for place in turned], *ranges), shape)
    return kept.index(*[place.within for place in turned]).load()


def _coordinate(index: UOp, around: Around, number: int) -> Coordinate:
    outer, inner = _parted(index, around)
    size = inner.vmax - inner.vmin + 1
    return Coordinate(outer, inner, ZERO if size == 1 else make_range(number, size), size)


def _parted(index: UOp, around: Around) -> tuple[UOp, UOp]:
    """A sum as what the loops around give, with the constant, and what those inside add."""
    terms, constant = linear(index)
    outer: dict[UOp, int] = {}
    inner: dict[UOp, int] = {}
    for atom, factor in terms.items():
        if atom.ranges <= around and atom.op is not Ops.CAST:
            outer[atom] = factor
        elif atom.ranges.isdisjoint(around) and atom.ranges:
            inner[atom] = factor
        else:
            raise IllegalMove("an index mixes loops inside with loops around, or with values")
    return build(Linear(outer, constant)), build(Linear(inner, 0))


def _moved_gate(gate: UOp | None, places: list[Coordinate], around: Around) -> UOp | None:
    """The conditions of the load, said of the elements that are copied."""
    found: list[UOp] = []
    for node in conditions_of(gate):
        if node.ranges <= around:
            found.append(node)
        elif is_limit(node):
            outer, inner = _parted(node.src[0], around)
            found.append(less(add(outer, _said_of(inner, places)), node.src[1].arg))
        else:
            raise IllegalMove("a condition is not about the place of an element")
    return all_of(tuple([c for c in found if not (c.is_const and c.arg)]))


def _said_of(inner: UOp, places: list[Coordinate]) -> UOp:
    """A sum over inner loops as plus or minus a coordinate of the copy."""
    for place in places:
        for sign in (1, -1):
            if inner is scale(place.inner, sign) and place.fresh is not ZERO:
                return scale(add(place.fresh, place.inner.vmin), sign)
    raise IllegalMove("a condition is not about one coordinate of an element")
