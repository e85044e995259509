"""Prefetches for the epilogue of long sums: memory used after the last iteration.

The epilogue of a tile of a matrix product accesses a few cache lines in each of many rows. They are
not cached, and a core has only some twenty line fills in flight; with more, the loads of the sum
itself stall. So where a sum is strip-mined (loops/strategies/shared/prefetch_split.py), each block
of iterations prefetches its share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from glassgrad.base.dtype import dtypes
from glassgrad.ir.cache_size import exceeds_cache
from glassgrad.ir.linear import Linear
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp
from glassgrad.lower.memory.non_temporal import divisor
from glassgrad.lower.memory.pointers import pointer_to
from glassgrad.lower.scope import loops_of

if TYPE_CHECKING:
    from glassgrad.lower.emit import Emitter, UnrollCopy

OPS_WITH_OWN_LOOPS = frozenset((Ops.REDUCE, Ops.STAGE, Ops.STORE, Ops.SCAN))
MIN_SUM_STEPS = 64  # iterations that take as long as a memory access


class PrefetchShare(NamedTuple):
    """Cache lines that each block of iterations prefetches: offsets from an advancing pointer."""

    pointer: UOp
    step: int
    offsets: tuple[int, ...]
    is_written: bool


def prefetch_epilogue(emitter: Emitter, stores: list[UOp], loops: tuple[UOp, ...]) -> None:
    """Prefetch each cache line that the stores' epilogue needs; `loops` are the loops of the
    epilogue.
    """
    lanes = {r: 0 for r in stores[0].bound if r.kind is AxisKind.LANE}
    points = product(*(range(r.size) for r in loops))
    epilogue_copies = [lanes | dict(zip(loops, point, strict=True)) for point in points]
    steps = [{**i, **step} for step in epilogue_copies for i in emitter.copies(stores[0].bound)]
    sum_loop = _outer_sum_loop(emitter, stores)
    for index, is_written in epilogue_accesses(stores, emitter.target).items():
        offset = emitter.flat(index)
        if any(a not in loops and not a.ranges.isdisjoint(loops) for a in offset.terms):
            continue  # the offset depends on a value that these loops compute
        copies = one_per_cache_line(offset, index.src[0].dtype.itemsize, steps, emitter.target)
        share = (
            None
            if sum_loop is None
            else _make_share(emitter, index, copies, sum_loop.size, is_written)
        )
        if sum_loop is not None and share is not None:
            emitter.prefetch_shares.setdefault(sum_loop, []).append(share)
            continue
        for step in copies:
            pointer = pointer_to(emitter, index.src[0], offset, step)
            emitter.scopes.emit_here(UOp(Ops.PREFETCH, dtypes.void, (pointer,), is_written))


def emit_prefetch_share(emitter: Emitter, sum_loop: UOp) -> None:
    """In a loop that was just opened: the prefetches of each iteration."""
    scopes = emitter.scopes
    for share in emitter.prefetch_shares.pop(sum_loop, ()):
        moved = emitter.times(scopes.stack[-1].lines[0], share.step)
        pointer = scopes.emit(UOp(Ops.INDEX, share.pointer.dtype, (share.pointer, moved)))
        for offset in share.offsets:
            index = UOp(Ops.INDEX, pointer.dtype, (pointer, emitter.index_constant(offset)))
            line = UOp(Ops.PREFETCH, dtypes.void, (scopes.emit(index),), share.is_written)
            scopes.emit_here(line)


def _outer_sum_loop(emitter: Emitter, stores: list[UOp]) -> UOp | None:
    """The outer loop of the long sums that the stores wait for, if they run in this loop."""
    found = [node for node in _inline_nodes(stores) if _is_long_sum(node) or _is_staged_sum(node)]
    sums = [node.src[0] if node.op is Ops.STAGE else node for node in found]
    loops = {loops_of(node.bound) for node in sums}
    if len(loops) != 1 or not all(_is_in_innermost_loop(emitter, node) for node in sums):
        return None
    ((first, *others),) = loops
    return first if others and first.src[0].is_const and first.size > 1 else None


def _is_in_innermost_loop(emitter: Emitter, node: UOp) -> bool:
    """True if the innermost open loop is the innermost one that a value depends on."""
    loops, scopes = emitter.loops(node), emitter.scopes
    is_open = all(loop in scopes.depth for loop in loops)
    return is_open and scopes.depth_of(loops) == len(scopes.stack) - 1


def _make_share(
    emitter: Emitter,
    index: UOp,
    copies: Sequence[UnrollCopy],
    iterations: int,
    is_written: bool,
) -> PrefetchShare | None:
    """The cache lines of one iteration, if those of all others have the same layout."""
    offset = emitter.flat(index)
    if any(a not in copies[0] and not a.ranges.isdisjoint(copies[0]) for a in offset.terms):
        return None
    offsets = sorted([_offset_of(offset, copy) for copy in copies])
    count, left_over = divmod(len(offsets), iterations)
    if left_over or not count:
        return None
    step = offsets[count] - offsets[0]
    if any(two - one != step for one, two in zip(offsets, offsets[count:])):
        return None
    nearest = min(copies, key=lambda copy: _offset_of(offset, copy))
    pointer = pointer_to(emitter, index.src[0], offset, nearest)
    first = tuple([offset - offsets[0] for offset in offsets[:count]])
    return PrefetchShare(pointer, step, first, is_written)


def epilogue_accesses(stores: list[UOp], target: Target) -> dict[UOp, bool]:
    """INDEXes of uncached memory that the epilogue of long sums accesses -> is it written?

    Stores of one group wait for each other's sums, so accesses of stores without a sum count too.
    """
    if target.has_threads or not target.has_hints:
        return {}  # other threads hide the latency
    nodes = _inline_nodes(stores)
    if not any(_is_long_sum(node) or _is_staged_sum(node) for node in nodes):
        return {}
    found = {node.src[0]: False for node in nodes if node.op is Ops.LOAD}
    found |= {store.src[0]: True for store in stores}
    return {
        index: is_written for index, is_written in found.items() if exceeds_cache(index, target)
    }


def _inline_nodes(stores: list[UOp]) -> list[UOp]:
    """The nodes that stores compute themselves, with the sums and scratch that they read."""
    values = [store.src[1].toposort(stop=_has_own_loops) for store in stores]
    return [node for own in values for node in own]


def one_per_cache_line(
    offset: Linear, itemsize: int, steps: Sequence[UnrollCopy], target: Target
) -> Sequence[UnrollCopy]:
    """The copies that access a cache line that none before accesses."""
    outside = {atom: factor for atom, factor in offset.terms.items() if atom not in steps[0]}
    if divisor(Linear(outside, offset.constant)) * itemsize % target.line_bytes:
        return steps  # alignment unknown
    found: dict[int, UnrollCopy] = {}
    for step in steps:
        found.setdefault(_offset_of(offset, step) * itemsize // target.line_bytes, step)
    return list(found.values())


def _offset_of(offset: Linear, copy: Mapping[UOp, int]) -> int:
    """The element offset of a copy, relative to all ranges at 0."""
    return sum([factor * copy.get(atom, 0) for atom, factor in offset.terms.items()])


def epilogue_loops(stores: list[UOp]) -> tuple[UOp, ...]:
    """The innermost loops of stores, if all their long sums are in scratch before these loops."""
    sums = [node for store in stores for node in store.src[1].toposort() if _is_staged_sum(node)]
    inside = {r for kept in sums for r in kept.ranges}
    found: list[UOp] = []
    for r in reversed(loops_of(stores[0].bound) if sums else ()):
        if r in inside:
            break
        found.append(r)
    return tuple(found[::-1])


def _is_staged_sum(node: UOp) -> bool:
    """True for a register tile of long sums."""
    if node.op is not Ops.STAGE or not _is_long_sum(node.src[0]):
        return False
    return all(r.kind.is_unrolled for r in node.bound)


def _has_own_loops(node: UOp) -> bool:
    """True if a value is computed in loops of its own, which end before the stores."""
    return node.op in OPS_WITH_OWN_LOOPS


def _is_long_sum(node: UOp) -> bool:
    if node.op is not Ops.REDUCE:
        return False
    return prod(r.size for r in node.bound if r.kind is AxisKind.REDUCE) >= MIN_SUM_STEPS
