"""Vectorize the copies of packed operands: along memory, or transposed in registers.

A panel has the lanes of an axis side by side. Where they are strided in memory and reduction steps
are contiguous, several steps are packed at a time: lower/memory/transpose.py loads them along
memory.
"""

from __future__ import annotations

from itertools import pairwise
from math import gcd, prod

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.strides import stride, written_stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.moves.lanes import LANE_STRIDES
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.shared.recipe_builder import RecipeBuilder

# reads per packed element: with more, copying is too small a share of the time to pay for the
# compile time of a transposed copy
MAX_REUSE = 512
MAX_CONFLICTING_REUSE = 4096  # the same where a strided copy has cache-set conflicts
MAX_DOT_STEPS = 4  # products per lane of a dot instruction
MAX_PANELS = 16  # panels filled at once
MAX_ROW_VECTORS = 8  # vectors of a fully unrolled row copy


def vectorize_packing(builder: RecipeBuilder) -> bool:
    """Vectorize all copies into scratch: along memory, or transposed. Always True."""
    vectorize_copies(builder)
    pack_transposed(builder)
    pack_interleaved(builder)
    pack_adjacent_panels(builder)
    return True


def vectorize_copies(builder: RecipeBuilder) -> None:
    """Fill scratch a vector at a time, along memory. Short rows are fully unrolled, so that the
    gates of padding become constants.
    """
    for number in range(len(builder.binders(Ops.STAGE))):
        binder = builder.binders(Ops.STAGE)[number]
        for axis in binder.bound:
            if axis.kind is AxisKind.LOOP and written_stride(binder, axis) == 1:
                amount = min(builder.lanes(binder), 1 << (axis.size.bit_length() - 1))
                builder.try_move(Opt(OptOps.UPCAST, axis.axis, amount))
                count = -(-axis.size // amount)
                if 1 < count <= MAX_ROW_VECTORS:
                    builder.try_move(Opt(OptOps.UPCAST, axis.axis, count))
                break


def pack_transposed(builder: RecipeBuilder) -> None:
    """Pack strided lanes several steps at a time, transposed in registers.

    Only for operands with limited reuse: transpositions take long to compile.
    """
    for number in range(len(builder.binders(Ops.STAGE))):
        binder = builder.binders(Ops.STAGE)[number]
        limit = MAX_CONFLICTING_REUSE if _has_set_conflicts(builder, binder) else MAX_REUSE
        if _reuse(builder, binder) > limit:
            continue
        while (pair := _mergeable_loops(builder, number)) is not None:
            builder.try_move(Opt(OptOps.COALESCE, *pair))
        binder = builder.binders(Ops.STAGE)[number]
        across, lanes = _contiguous_loop(builder, binder), builder.lanes(binder)
        if across is not None and across.size >= lanes:
            builder.try_move(Opt(OptOps.UPCAST, across.axis, lanes))


def pack_adjacent_panels(builder: RecipeBuilder) -> None:
    """Fill panels that are adjacent in memory together, to read longer runs, and the steps that
    share a line of a panel, to avoid cache-set conflicts between panels.
    """
    candidates = [
        (_adjacent_panels(builder, b), _steps_of_line(builder, b))
        for b in builder.binders(Ops.STAGE)
    ]
    for panels, steps in candidates:
        if panels is None:
            continue
        limit = MAX_PANELS
        if steps is not None and builder.try_move(steps):
            limit //= steps.arg
        counts = [n for n in range(2, limit + 1) if panels.size % n == 0]
        if counts:
            builder.try_move(Opt(OptOps.UPCAST, panels.axis, counts[-1]))


def _steps_of_line(builder: RecipeBuilder, binder: UOp) -> Opt | None:
    """Unroll the loop that continues in scratch where the lanes of a STAGE end, up to a cache
    line.
    """
    width = prod(r.size for r in binder.bound if r.kind.is_unrolled)
    limit = builder.target.line_bytes // (width * binder.dtype.itemsize)
    for r in binder.bound:
        if r.kind is AxisKind.LOOP and written_stride(binder, r) == width:
            amounts = [n for n in range(2, limit + 1) if r.size % n == 0]
            return Opt(OptOps.UPCAST, r.axis, amounts[-1]) if amounts else None
    return None


def _adjacent_panels(builder: RecipeBuilder, binder: UOp) -> UOp | None:
    """The loop that continues in memory where the lanes of a STAGE end."""
    index = _copied_index(builder, binder)
    lanes = [r for r in binder.bound if r.kind.is_unrolled]
    if index is None or not lanes or not all(stride(index, r) for r in lanes):
        return None
    width = prod(r.size for r in lanes)
    loops = [r for r in binder.bound if r.kind is AxisKind.LOOP]
    return next((r for r in loops if stride(index, r) == width), None)


def pack_interleaved(builder: RecipeBuilder) -> None:
    """Interleave the steps of a dot instruction: read along memory, write with a stride."""
    for binder in builder.binders(Ops.STAGE):
        steps = [r for r in binder.bound if r.kind is AxisKind.UPCAST]
        steps = [r for r in steps if written_stride(binder, r) == 1 and r.size <= MAX_DOT_STEPS]
        for index in builder.loads(binder) if steps else ():
            for adjacent in binder.bound:
                is_adjacent = written_stride(binder, adjacent) == steps[0].size
                if is_adjacent and stride(index, adjacent) == 1:
                    amount = min(builder.lanes(binder), adjacent.size & -adjacent.size)
                    builder.try_move(Opt(OptOps.LANES, adjacent.axis, amount))


def _has_set_conflicts(builder: RecipeBuilder, binder: UOp) -> bool:
    """True if the lanes' lines map to so few L1 sets that they are evicted before the next step."""
    index, target = _copied_index(builder, binder), builder.target
    lanes = [r for r in binder.bound if r.kind.is_unrolled]
    if index is None or not lanes:
        return False
    smallest = min(abs(stride(index, r) or 0) for r in lanes)
    distance = smallest * index.dtype.itemsize
    way = target.l1_bytes // target.l1_ways
    capacity = way // gcd(distance, way) * target.l1_ways
    return distance >= target.line_bytes and prod(r.size for r in lanes) > capacity


def _reuse(builder: RecipeBuilder, binder: UOp) -> float:
    """The number of products per packed element."""
    products = max(_iterations(reduce) for reduce in builder.binders(Ops.REDUCE))
    return products / _iterations(binder)


def _iterations(binder: UOp) -> int:
    return prod(r.size for r in {*binder.ranges, *binder.bound})


def _contiguous_loop(builder: RecipeBuilder, binder: UOp) -> UOp | None:
    """The loop that reads along memory, if lanes of a STAGE are read with a stride."""
    index = _copied_index(builder, binder)
    if index is None or not _is_strided(binder, index):
        return None
    loops = [r for r in binder.bound if r.kind is AxisKind.LOOP]
    return next((r for r in loops if stride(index, r) == 1), None)


def _copied_index(builder: RecipeBuilder, binder: UOp) -> UOp | None:
    """The INDEX that a STAGE copies, if it reads only that, without a gate."""
    loads = builder.loads(binder)
    return loads[0] if len(loads) == 1 and loads[0].gate is None else None


def _is_strided(binder: UOp, index: UOp) -> bool:
    """True if lanes that are adjacent in scratch are strided in memory."""
    adjacent = [r for r in binder.bound if written_stride(binder, r) == 1]
    return any(r.kind.is_unrolled and stride(index, r) not in LANE_STRIDES for r in adjacent)


def _mergeable_loops(builder: RecipeBuilder, number: int) -> tuple[int, int] | None:
    """Two loops of a STAGE that read and write as one longer loop."""
    binder = builder.binders(Ops.STAGE)[number]
    index = _copied_index(builder, binder)
    if index is None or not _is_strided(binder, index):
        return None
    for first, second in pairwise(binder.bound):
        if first.kind is second.kind is AxisKind.LOOP:
            strides = [(stride(index, r), written_stride(binder, r)) for r in (first, second)]
            if strides[0] == tuple(None if s is None else s * second.size for s in strides[1]):
                return first.axis, second.axis
    return None
