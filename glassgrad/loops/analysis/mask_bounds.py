"""Steps of a loop that change nothing: what a mask hides from a row is not computed.

In where(j <= i, x[i, j], -inf) all places from j = i + 1 on are hidden from row i. A maximum leaves
them out, exp makes them 0, a sum leaves those out: every loop over j may end there. Seen from row j
of the transposed matrix, all places up to i = j - 1 are hidden, and loops may begin there. This
module finds such loops, and for a block of rows the places where all of them may begin and end.

Hidden products count as 0, and what is added to -inf as finite, as in any attention that skips.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import inf
from typing import NamedTuple

from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.divmod import floordiv
from glassgrad.ir.facts import identity
from glassgrad.ir.linear import ZERO, add, linear, maximum, minimum, scale, sub
from glassgrad.ir.ops import Ops
from glassgrad.ir.reindex import reindex
from glassgrad.ir.staged import carried_over
from glassgrad.ir.stages import Limit, Nest
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.loops.nest import axes, exchange
from glassgrad.loops.opts import Opt, OptOps

CUTTING = frozenset((OptOps.UPCAST, OptOps.UNROLL, OptOps.TILE))
KEEPING = CUTTING | {OptOps.SWAP, OptOps.STAGE, OptOps.WINDOW, OptOps.CORE, OptOps.LANES}
GRAIN = 64  # loops end at multiples of this, so that all agree on how far scratch is filled
Known = float | bool | None
PLACES: dict[Ops, Callable[[UOp, UOp], UOp]] = {Ops.ADD: add, Ops.SUB: sub}


class Side(NamedTuple):
    """Places that are at least `distance` beyond the row (toward = 1), or before it (-1)."""

    row: UOp
    toward: int
    distance: int


def hidden_loops(body: UOp, row: UOp, toward: int, grain: int = GRAIN) -> tuple[set[UOp], int]:
    """Loops whose places on a side of the row, at some distance from it, are of no use; how far.

    Only those whose size is a multiple of the grain.
    """
    nodes = body.toposort()
    for distance in sorted({d for node in nodes for d in _distances(node, row, toward)}):
        loops = _loops_at(nodes, Side(row, toward, distance))
        found = {r for r in loops if r.src[0].is_const and r.size % grain == 0}
        if found:
            return found, distance
    return set(), 0


def _distances(node: UOp, row: UOp, toward: int) -> list[int]:
    """Where a comparison of a place with the row changes its answer."""
    if node.op is not Ops.CMPLT:
        return []
    found = _difference(node, row)
    if found is None:
        return []
    _, sign, offset = found
    return [-offset if sign == toward else offset + 1]


def _difference(node: UOp, row: UOp) -> tuple[UOp, int, int] | None:
    """left - right as (place, sign, offset), if it is sign·(place - row) + offset"""
    left, right = [_as_place(source) for source in node.src]
    if left is None or right is None:
        return None
    terms, offset = linear(sub(left, right))
    others = [atom for atom in terms if atom is not row]
    if len(terms) != 2 or len(others) != 1 or others[0].op is not Ops.RANGE:
        return None
    sign = terms[others[0]]
    return (others[0], sign, offset) if abs(sign) == 1 and terms[row] == -sign else None


def _as_place(node: UOp) -> UOp | None:
    """An integer that is a sum of places, as an index."""
    if node.dtype.kind == "index":
        return node
    if node.op is Ops.CONST and isinstance(node.arg, int):
        return const(node.arg)
    if node.op is Ops.CAST and node.src[0].dtype.kind == "index":
        return node.src[0]
    if node.op in PLACES:
        left, right = [_as_place(source) for source in node.src]
        return None if left is None or right is None else PLACES[node.op](left, right)
    return None


def _loops_at(nodes: list[UOp], side: Side) -> set[UOp]:
    """Readers before what they read: a stage is filled as far as anybody looks."""
    found: set[UOp] = set()
    needed: set[UOp] = set()
    for node in reversed(nodes):
        if node.op is Ops.REDUCE:
            nothing = identity(node.arg, node.dtype)
            for r in node.bound:
                hides = known(node.src[0], r, side) == nothing
                (found if hides else needed).add(r)
        elif node.op is Ops.STORE:
            needed.update(node.bound)
        elif node.op is Ops.STAGE and carried_over(node):
            for r in node.bound:  # what is carried stays as it is where nothing is added
                hides = known(node.src[0].src[0], r, side) == 0 and node.src[0].arg is Ops.ADD
                (found if hides else needed).add(r)
        elif node.op is Ops.STAGE:
            indices = [index for index in nodes if index.op is Ops.INDEX and index.src[0] is node]
            for number, place in enumerate(node.places):
                read = [index.indices[number] for index in indices]
                is_useless = place.op is Ops.RANGE and all(r in found - needed for r in read)
                (found if is_useless else needed).update({place} & set(node.bound))
    return found - needed


def known(node: UOp, place: UOp, side: Side) -> Known:
    """The value of an expression at all places on that side; None if it is not one value."""
    if node.op is Ops.CONST:
        value = node.arg
        return value if isinstance(value, bool) else float(value)
    if node.op in (Ops.CMPLT, Ops.CMPEQ) and node.src[0].dtype.kind != "float":
        return _compared(node, place, side)
    if node.op is Ops.WHERE:
        condition = known(node.src[0], place, side)
        return None if condition is None else known(node.src[1 if condition else 2], place, side)
    if node.op is Ops.LOAD and node.buffer.op in (Ops.STAGE, Ops.STORE):
        return _read(node.src[0], place, side)
    if node.op is Ops.CAST and node.dtype.kind == "float":
        return known(node.src[0], place, side)
    if node.op is Ops.REDUCE:
        value = known(node.src[0], place, side)
        return value if value == identity(node.arg, node.dtype) else None
    if node.op in COMBINED:
        return COMBINED[node.op](*[known(source, place, side) for source in node.src])
    return None


def _compared(node: UOp, place: UOp, side: Side) -> bool | None:
    found = _difference(node, side.row)
    if found is None or found[0] is not place:
        return None
    _, sign, offset = found
    least = side.distance + sign * side.toward * offset  # of how far it is, and the offset
    if node.op is Ops.CMPEQ:
        return False if least > 0 else None
    if sign == side.toward:
        return False if least >= 0 else None
    return True if least > 0 else None


def _read(index: UOp, place: UOp, side: Side) -> Known:
    """What was written at such places, by this kernel."""
    block = index.src[0]
    places = block.src[0].indices if block.op is Ops.STORE else block.places
    for written, read in zip(places, index.indices, strict=True):
        if read is place and written.op is Ops.RANGE:
            return known(block.value, written, side)
    return None


# ---------------------------------------------------------------------- arithmetic with unknowns


def _add(left: Known, right: Known) -> Known:
    if left == -inf or right == -inf:
        return -inf
    return None if left is None or right is None else left + right


def _sub(left: Known, right: Known) -> Known:
    if left == -inf:
        return -inf
    return None if left is None or right is None else left - right


def _mul(left: Known, right: Known) -> Known:
    if left == 0 or right == 0:
        return 0.0
    return None if left is None or right is None else left * right


def _and(left: Known, right: Known) -> Known:
    if left is False or right is False:
        return False
    return True if left is True and right is True else None


def _or(left: Known, right: Known) -> Known:
    if left is True or right is True:
        return True
    return False if left is False and right is False else None


def _differ(left: Known, right: Known) -> Known:
    return None if left is None or right is None else left != right


COMBINED: dict[Ops, Callable[..., Known]] = {
    Ops.ADD: _add,
    Ops.SUB: _sub,
    Ops.MUL: _mul,
    Ops.FDIV: lambda left, right: 0.0 if left == 0 else None,
    Ops.EXP2: lambda value: 0.0 if value == -inf else None,
    Ops.AND: _and,
    Ops.OR: _or,
    Ops.CMPNE: _differ,
}


# ---------------------------------------------------------------------- shorter loops


def limits_of(body: UOp, row: UOp, start: UOp, rows: int) -> tuple[Limit, ...]:
    """Where loops may begin and end for a block of so many rows from `start` on."""
    before, ahead = hidden_loops(body, row, -1, grain=1)
    beyond, behind = hidden_loops(body, row, 1)
    begin, end = maximum(add(start, 1 - ahead), ZERO), add(start, rows - 1 + behind)
    return tuple(
        [
            Limit(r.axis, begin if r in before else ZERO, end if r in beyond else None)
            for r in sorted(before | beyond, key=lambda r: r.axis)
        ]
    )


def limits_in_blocks(
    limits: tuple[Limit, ...], loops: Collection[UOp], blocks: UOp, amount: int
) -> tuple[Limit, ...]:
    """The same when these loops go by in blocks: which of them, and how much of each.

    None where they do not all begin and end alike.
    """
    numbers = {r.axis for r in loops}
    ends = {(n.begin, n.end) for n in limits if n.axis in numbers}
    others = [n for n in limits if n.axis not in numbers]
    if len(ends) != 1 or others or len(limits) < len(numbers) or amount % GRAIN:
        return ()
    ((begin, end),) = ends
    start = scale(blocks, amount)
    first = begin if begin is ZERO else maximum(sub(begin, start), ZERO)
    rest = None if end is None else sub(end, start)
    inside = [Limit(n.axis, first, rest) for n in limits]
    return (Limit(blocks.axis, begin, end, amount), *inside)


def cut(limits: tuple[Limit, ...], opt: Opt, nest: Nest) -> tuple[Limit, ...]:
    """The limits of a nest after a move: a step of a loop that was cut covers more places.

    None if loops that they speak of are not what they were.
    """
    now = {r.axis: r for r in axes(nest)}
    around = {r for n in limits for end in (n.begin, n.end) if end is not None for r in end.ranges}
    same = {r: found for r in around if (found := _after(r, opt, now)) is not None}
    if len(same) < len(around):
        return ()
    moved = {opt.axis, opt.arg} if opt.op is OptOps.JOIN else {opt.axis}
    if opt.op not in KEEPING and not moved.isdisjoint([n.axis for n in limits]):
        return ()
    changed = {r: found for r, found in same.items() if found is not r}
    return tuple([_moved(n, changed, opt) for n in limits])


def _after(r: UOp, opt: Opt, now: dict[int, UOp]) -> UOp | None:
    """What stands for a loop after a move, be it divided among cores or cut into blocks."""
    found = now.get(r.axis)
    if found is None or found.src == r.src:
        return found
    if opt.op is not OptOps.TILE or opt.axis != r.axis:
        return None
    start = scale(found, opt.arg)
    if r.size % opt.arg:
        start = minimum(start, const(r.size - opt.arg))
    return add(start, now[max(now)])


def _moved(limit: Limit, changed: dict[UOp, UOp], opt: Opt) -> Limit:
    begin, end = limit.begin, limit.end
    if changed:
        begin = reindex(begin, changed)
        end = None if end is None else reindex(end, changed)
    is_cut = opt.op in CUTTING and opt.axis == limit.axis
    return Limit(limit.axis, begin, end, limit.step * (opt.arg or 1) if is_cut else limit.step)


def shorten(nest: Nest) -> Nest:
    """Loops leave out what a block of rows does not see; all of them, or none if one cannot."""
    found = {r.axis: r for r in axes(nest) if not r.kind.is_unrolled}
    if any(n.axis not in found or not is_whole(n.step) for n in nest.limits):
        return nest
    changed: dict[UOp, UOp] = {}  # blocks, whose ends come first, are in the ends of what is inside
    for limit in nest.limits:
        axis, grain = found[limit.axis], max(GRAIN, limit.step)
        begin, end = reindex(limit.begin, changed), const(axis.size)
        begin = scale(floordiv(begin, grain), grain // limit.step)
        if limit.end is not None:
            last = floordiv(add(reindex(limit.end, changed), grain - 1), grain)
            end = minimum(scale(last, grain // limit.step), end)
        short = make_range(axis.axis, sub(end, begin), axis.kind)
        changed[axis] = add(begin, short)
        nest = exchange(nest, axis, (short,), changed[axis])
    return replace(nest, limits=())


def is_whole(step: int) -> bool:
    """Is it a whole number of grains, or a grain of steps?"""
    return GRAIN % step == 0 or step % GRAIN == 0
