"""What sums read next is asked for while they go on: PREFETCHes in their innermost loop.

Sums read scratch, or rows of memory as they lie. Nothing brings near what is packed into scratch
for the next block of loops, or the rows of the next tile: cores would wait for memory then, and
memory for cores while they multiply.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from glassgrad.base.dtype import dtypes
from glassgrad.base.fast_dataclasses import frozen
from glassgrad.ir.distance import is_far
from glassgrad.ir.divmod import floordiv
from glassgrad.ir.linear import Linear, add, linear, plus, scale
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.lower.memory.pointers import pointer_to
from glassgrad.lower.prefetch.epilogue import OPS_WITH_OWN_LOOPS
from glassgrad.lower.scope import loops_of

if TYPE_CHECKING:
    from glassgrad.lower.emit import Emitter

MIN_PRODUCTS_PER_STEP = 12  # products in one step of a loop, beside which a PREFETCH costs little
MAX_PREFETCHES_PER_STEP = 2  # places that are asked for in one step
MIN_REUSE = 32  # of an element, in products: with fewer, sums wait for memory anyway
MAX_REUSE = 512  # beside which it does not matter how long the first one waits


@frozen
class Region:
    """Memory that a sum reads, or that is copied for it: what is at an INDEX with all steps of some
    ranges, for each step of the loops around.
    """

    index: UOp
    ranges: tuple[UOp, ...]
    around: list[UOp]  # from the outside


@frozen
class Runs:
    """The same as places: so many runs of elements, so far apart."""

    count: int
    length: int
    pitch: int


def prefetch_operands(emitter: Emitter, reduce: UOp, products: int) -> None:
    """In the innermost loop of a sum: places in what is seen next, further on with every step, so
    that all of it has been asked for when its turn comes.
    """
    if (
        products < MIN_PRODUCTS_PER_STEP
        or emitter.target.has_threads
        or not emitter.target.has_hints
    ):
        return
    for node in reduce.value.toposort(stop=_ends_expression):
        region = _region(emitter, reduce, node) if node.op is Ops.LOAD else None
        for pointer in _next_pointers(emitter, reduce, region) if region is not None else ():
            emitter.scopes.emit_here(UOp(Ops.PREFETCH, dtypes.void, (pointer,), False))


def _ends_expression(node: UOp) -> bool:
    """Is it read, or computed in loops of its own, which are closed where this sum runs?"""
    return node.op is Ops.LOAD or node.op in OPS_WITH_OWN_LOOPS


def _region(emitter: Emitter, reduce: UOp, load: UOp) -> Region | None:
    """What a LOAD of a sum sees of memory, or the STAGE that it reads; None if that is near."""
    is_copied = load.buffer.op is Ops.STAGE
    block = load.buffer if is_copied else reduce
    index = _copied_index(load.buffer) if is_copied else load.src[0]
    if index is None or not is_far(index, emitter.target):
        return None
    around = (block.ranges if is_copied else load.ranges) - set(block.bound)
    unrolled = [r for r in around if r.kind.is_unrolled]
    if is_copied and unrolled:
        return None  # it is filled for each of them
    loops = sorted(loops_of(around), key=emitter.scopes.depth.__getitem__)
    return Region(index, (*block.bound, *unrolled), loops)


def _next_pointers(emitter: Emitter, reduce: UOp, region: Region) -> list[UOp]:
    """Pointers into the memory that is seen when the loops around it go on."""
    depth, place = emitter.scopes.depth, _without_overlap(emitter.flat(region.index))
    runs, moving = _runs(place, region), [r for r in region.around if r in place.terms]
    if runs is None or not moving:
        return []
    inside = sorted(
        [r for r in depth if depth[r] > depth[region.around[-1]]], key=depth.__getitem__
    )
    if not all(r.src[0].is_const for r in inside):
        return []
    uses = _reuse(reduce, region)
    if uses < MIN_REUSE or (runs.count > 1 and uses >= MAX_REUSE):
        return []
    sums = list(loops_of(reduce.bound))
    tiles = [r for r in inside if r not in sums]
    line = emitter.target.line_bytes // region.index.src[0].dtype.itemsize
    begin = _next_start(place, region, moving)
    places = [plus(begin, linear(away)) for away in _prefetch_offsets(runs, tiles, sums, line)]
    return [pointer_to(emitter, region.index.src[0], one, {}) for one in places]


def _reuse(reduce: UOp, region: Region) -> int:
    """How many products an element goes into."""
    inside = {*reduce.ranges, *reduce.bound} - set(region.around)
    return prod(r.size for r in inside) // prod(r.size for r in region.ranges)


def _next_start(place: Linear, region: Region, loops: list[UOp]) -> Linear:
    """Where the memory begins that is seen next: a step of the innermost loop further on, or, if it
    was the last one, where the loop around it goes on.
    """
    terms = {atom: factor for atom, factor in place.terms.items() if atom not in region.ranges}
    inner, step = loops[-1], place.terms[loops[-1]]
    begin = Linear(terms, place.constant + step)
    further = place.terms[loops[-2]] - inner.size * step if len(loops) > 1 else 0
    is_done = floordiv(add(inner, 1), inner.size)
    return plus(begin, linear(is_done), further) if further else begin


def _prefetch_offsets(runs: Runs, tiles: list[UOp], sums: list[UOp], line: int) -> list[UOp]:
    """How far from there each step of the sums asks, so that all is asked for when tiles are done:
    a tile asks for a run or two, and the steps of its sums walk along it.
    """
    if runs.count == 1:
        return [_loop_offset(tiles + sums, runs.length, line)]
    count = prod(r.size for r in tiles)
    each = -(-runs.count // count)
    if each > MAX_PREFETCHES_PER_STEP:
        return []
    first = scale(_loop_offset(tiles, count, 1), each)
    rows = [floordiv(scale(add(first, i), runs.count), count * each) for i in range(each)]
    along = _loop_offset(sums, runs.length, line)
    return [add(scale(row, runs.pitch), along) for row in rows]


def _loop_offset(loops: list[UOp], length: int, most: int) -> UOp:
    """How far loops have walked: to the end of a length in all, if steps of `most` reach it."""
    step = min(most, -(-length // prod(r.size for r in loops)))
    parts: list[UOp | int] = [0]
    for r in reversed(loops):
        parts.append(scale(r, step))
        step *= r.size
    return add(*parts)


def _copied_index(stage: UOp) -> UOp | None:
    """The INDEX of what a STAGE copies, if it only copies or converts."""
    value = stage.value
    while value.op is Ops.CAST:
        value = value.src[0]
    return value.src[0] if value.op is Ops.LOAD else None


def _without_overlap(place: Linear) -> Linear:
    """Where blocks would lie if the last one did not overlap the one before."""
    total = Linear({}, place.constant)
    for atom, factor in place.terms.items():
        is_shifted = atom.op is Ops.MIN and atom.src[1].is_const
        inner = _without_overlap(linear(atom.src[0])) if is_shifted else Linear({atom: 1}, 0)
        total = plus(total, inner, factor)
    return total


def _runs(place: Linear, region: Region) -> Runs | None:
    """Which places are seen, if they are runs that lie evenly."""
    ranges = set(region.ranges)
    if any(not atom.ranges.isdisjoint(ranges) and atom not in ranges for atom in place.terms):
        return None
    steps = sorted([(place.terms.get(r, 0), r.size) for r in ranges])
    length = 1
    while steps and steps[0][0] == length:
        length *= steps.pop(0)[1]
    count, pitch = 1, steps[0][0] if steps else length
    for step, size in steps:
        if step != pitch * count or step < length:
            return None
        count *= size
    return Runs(count, length, pitch)
