"""Prefetches in the innermost loop of a sum for the operands of the next tile or packed panel.

Sums read packed scratch, or rows of memory. The hardware prefetcher does not follow what will be
packed for the next panel, or the rows of the next tile: without prefetches the core computes while
memory is idle, then waits for memory.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from glassgrad.base.dtype import dtypes
from glassgrad.base.fast_dataclasses import frozen
from glassgrad.ir.cache_size import exceeds_cache
from glassgrad.ir.divmod import floordiv
from glassgrad.ir.linear import Linear, add, linear, plus, scale
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.lower.memory.pointers import pointer_to
from glassgrad.lower.prefetch.epilogue import OPS_WITH_OWN_LOOPS
from glassgrad.lower.scope import loops_of

if TYPE_CHECKING:
    from glassgrad.lower.emit import Emitter

MIN_PRODUCTS_PER_STEP = 12  # products per iteration that make the cost of a prefetch small
MAX_PREFETCHES_PER_STEP = 2  # per iteration; more would compete with the loads of the sum
MIN_REUSE = 32  # products per element; with fewer, the sum is bound by memory bandwidth anyway
MAX_REUSE = 512  # products per element; with more, the latency of the first access does not matter


@frozen
class Region:
    """Memory that a sum reads, or that is packed for it: an INDEX over all values of `ranges`, for
    each iteration of the loops around.
    """

    index: UOp
    ranges: tuple[UOp, ...]
    outer_loops: list[UOp]  # outermost first


@frozen
class Runs:
    """The same as `count` contiguous runs of `length` elements, `pitch` elements apart."""

    count: int
    length: int
    pitch: int


def prefetch_operands(emitter: Emitter, reduce: UOp, products: int) -> None:
    """In the innermost loop of a sum: prefetch the next tile evenly over the iterations of this
    one.
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
    """True for loads and for values with loops of their own, which are closed here."""
    return node.op is Ops.LOAD or node.op in OPS_WITH_OWN_LOOPS


def _region(emitter: Emitter, reduce: UOp, load: UOp) -> Region | None:
    """The memory that a LOAD reads, directly or packed into a STAGE; None if it may be cached."""
    is_copied = load.buffer.op is Ops.STAGE
    block = load.buffer if is_copied else reduce
    index = _copied_index(load.buffer) if is_copied else load.src[0]
    if index is None or not exceeds_cache(index, emitter.target):
        return None
    outer_loops = (block.ranges if is_copied else load.ranges) - set(block.bound)
    unrolled = [r for r in outer_loops if r.kind.is_unrolled]
    if is_copied and unrolled:
        return None  # packed once per unroll copy
    loops = sorted(loops_of(outer_loops), key=emitter.scopes.depth.__getitem__)
    return Region(index, (*block.bound, *unrolled), loops)


def _next_pointers(emitter: Emitter, reduce: UOp, region: Region) -> list[UOp]:
    """Pointers into the memory that the next iteration of the loops around reads."""
    depth, offset = emitter.scopes.depth, _without_overlap(emitter.flat(region.index))
    runs, advancing = _runs(offset, region), [r for r in region.outer_loops if r in offset.terms]
    if runs is None or not advancing:
        return []
    inside = sorted(
        [r for r in depth if depth[r] > depth[region.outer_loops[-1]]], key=depth.__getitem__
    )
    if not all(r.src[0].is_const for r in inside):
        return []
    uses = _reuse(reduce, region)
    if uses < MIN_REUSE or (runs.count > 1 and uses >= MAX_REUSE):
        return []
    sums = list(loops_of(reduce.bound))
    tiles = [r for r in inside if r not in sums]
    line = emitter.target.line_bytes // region.index.src[0].dtype.itemsize
    begin = _next_start(offset, region, advancing)
    offsets = [
        plus(begin, linear(distance)) for distance in _prefetch_offsets(runs, tiles, sums, line)
    ]
    return [pointer_to(emitter, region.index.src[0], one, {}) for one in offsets]


def _reuse(reduce: UOp, region: Region) -> int:
    """The number of products that each element is a factor of."""
    inside = {*reduce.ranges, *reduce.bound} - set(region.outer_loops)
    return prod(r.size for r in inside) // prod(r.size for r in region.ranges)


def _next_start(offset: Linear, region: Region, loops: list[UOp]) -> Linear:
    """The offset of the next region: the innermost loop's next iteration, or, after its last one,
    the next iteration of the loop around it.
    """
    terms = {atom: factor for atom, factor in offset.terms.items() if atom not in region.ranges}
    inner, step = loops[-1], offset.terms[loops[-1]]
    begin = Linear(terms, offset.constant + step)
    further = offset.terms[loops[-2]] - inner.size * step if len(loops) > 1 else 0
    is_done = floordiv(add(inner, 1), inner.size)
    return plus(begin, linear(is_done), further) if further else begin


def _prefetch_offsets(runs: Runs, tiles: list[UOp], sums: list[UOp], line: int) -> list[UOp]:
    """The offsets that each iteration prefetches, to have covered all when the tiles are done: each
    tile covers one or two runs, and the iterations of its sums advance along them.
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


def _loop_offset(loops: list[UOp], length: int, max_step: int) -> UOp:
    """The offset of loops that cover `length`, advancing at most `max_step` per iteration."""
    step = min(max_step, -(-length // prod(r.size for r in loops)))
    parts: list[UOp | int] = [0]
    for r in reversed(loops):
        parts.append(scale(r, step))
        step *= r.size
    return add(*parts)


def _copied_index(stage: UOp) -> UOp | None:
    """The INDEX that a STAGE copies from; None if it computes more than a cast."""
    value = stage.value
    while value.op is Ops.CAST:
        value = value.src[0]
    return value.src[0] if value.op is Ops.LOAD else None


def _without_overlap(offset: Linear) -> Linear:
    """The offset of a block if the last block did not overlap the one before."""
    total = Linear({}, offset.constant)
    for atom, factor in offset.terms.items():
        is_shifted = atom.op is Ops.MIN and atom.src[1].is_const
        inner = _without_overlap(linear(atom.src[0])) if is_shifted else Linear({atom: 1}, 0)
        total = plus(total, inner, factor)
    return total


def _runs(offset: Linear, region: Region) -> Runs | None:
    """The accessed offsets as evenly spaced runs; None if they are not."""
    ranges = set(region.ranges)
    if any(not atom.ranges.isdisjoint(ranges) and atom not in ranges for atom in offset.terms):
        return None
    steps = sorted([(offset.terms.get(r, 0), r.size) for r in ranges])
    length = 1
    while steps and steps[0][0] == length:
        length *= steps.pop(0)[1]
    count, pitch = 1, steps[0][0] if steps else length
    for step, size in steps:
        if step != pitch * count or step < length:
            return None
        count *= size
    return Runs(count, length, pitch)
