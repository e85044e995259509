"""What is needed behind a long sum is asked for before it is done: which places get a PREFETCH.

A tile of a matrix product reads and writes a few lines of memory when its sums are done, each of
them in another row: nothing has brought them near, and a core would wait for all of them. It can
wait for some twenty lines at a time; beyond that, what its sums read has to wait as well. So where
a sum goes in turns (loops/strategies/prefetch_split.py), each of them asks for a share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from glassgrad.base.dtype import dtypes
from glassgrad.ir.distance import is_far
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
MIN_SUM_STEPS = 64  # steps of a sum that take as long as memory


class PrefetchShare(NamedTuple):
    """Lines that every turn asks for: so far from a pointer, which moves on with each of them."""

    pointer: UOp
    step: int
    offsets: tuple[int, ...]
    is_written: bool


def prefetch_epilogue(emitter: Emitter, stores: list[UOp], later: tuple[UOp, ...]) -> None:
    """Ask for every line of memory that is needed when the sums are done; `later` are the loops
    that begin then.
    """
    lanes = {r: 0 for r in stores[0].bound if r.kind is AxisKind.LANE}
    places = product(*(range(r.size) for r in later))
    ahead = [lanes | dict(zip(later, place, strict=True)) for place in places]
    steps = [{**i, **step} for step in ahead for i in emitter.copies(stores[0].bound)]
    turns = _outer_sum_loop(emitter, stores)
    for index, is_written in epilogue_accesses(stores, emitter.target).items():
        place = emitter.flat(index)
        if any(a not in later and not a.ranges.isdisjoint(later) for a in place.terms):
            continue  # where it is, is known in these loops
        lines = one_per_cache_line(place, index.src[0].dtype.itemsize, steps, emitter.target)
        share = (
            None if turns is None else _make_share(emitter, index, lines, turns.size, is_written)
        )
        if turns is not None and share is not None:
            emitter.prefetch_shares.setdefault(turns, []).append(share)
            continue
        for step in lines:
            pointer = pointer_to(emitter, index.src[0], place, step)
            emitter.scopes.emit_here(UOp(Ops.PREFETCH, dtypes.void, (pointer,), is_written))


def emit_prefetch_share(emitter: Emitter, turns: UOp) -> None:
    """In a loop that was just opened: what each of its steps asks for."""
    scopes = emitter.scopes
    for share in emitter.prefetch_shares.pop(turns, ()):
        moved = emitter.times(scopes.stack[-1].lines[0], share.step)
        pointer = scopes.emit(UOp(Ops.INDEX, share.pointer.dtype, (share.pointer, moved)))
        for offset in share.offsets:
            place = UOp(Ops.INDEX, pointer.dtype, (pointer, emitter.index_constant(offset)))
            line = UOp(Ops.PREFETCH, dtypes.void, (scopes.emit(place),), share.is_written)
            scopes.emit_here(line)


def _outer_sum_loop(emitter: Emitter, stores: list[UOp]) -> UOp | None:
    """The outer one of the loops of the long sums that stores wait for, if it runs here."""
    found = [node for node in _inline_nodes(stores) if _is_long_sum(node) or _is_staged_sum(node)]
    sums = [node.src[0] if node.op is Ops.STAGE else node for node in found]
    loops = {loops_of(node.bound) for node in sums}
    if len(loops) != 1 or not all(_is_in_innermost_loop(emitter, node) for node in sums):
        return None
    ((first, *others),) = loops
    return first if others and first.src[0].is_const and first.size > 1 else None


def _is_in_innermost_loop(emitter: Emitter, node: UOp) -> bool:
    """Is the innermost of the open loops the innermost one that a value depends on?"""
    loops, scopes = emitter.loops(node), emitter.scopes
    is_open = all(loop in scopes.depth for loop in loops)
    return is_open and scopes.depth_of(loops) == len(scopes.stack) - 1


def _make_share(
    emitter: Emitter, index: UOp, lines: Sequence[UnrollCopy], turns: int, is_written: bool
) -> PrefetchShare | None:
    """The lines of one turn, if those of all others lie like them, each time as far away."""
    place = emitter.flat(index)
    if any(a not in lines[0] and not a.ranges.isdisjoint(lines[0]) for a in place.terms):
        return None
    offsets = sorted([_offset(place, step) for step in lines])
    count, left_over = divmod(len(offsets), turns)
    if left_over or not count:
        return None
    step = offsets[count] - offsets[0]
    if any(two - one != step for one, two in zip(offsets, offsets[count:])):
        return None
    nearest = min(lines, key=lambda line: _offset(place, line))
    pointer = pointer_to(emitter, index.src[0], place, nearest)
    first = tuple([offset - offsets[0] for offset in offsets[:count]])
    return PrefetchShare(pointer, step, first, is_written)


def epilogue_accesses(stores: list[UOp], target: Target) -> dict[UOp, bool]:
    """INDEXes that are far away until long sums are done -> are they written to?

    What is stored together waits together: also what needs no sum itself.
    """
    if target.has_threads or not target.has_hints:
        return {}  # others have work while one waits
    nodes = _inline_nodes(stores)
    if not any(_is_long_sum(node) or _is_staged_sum(node) for node in nodes):
        return {}
    found = {node.src[0]: False for node in nodes if node.op is Ops.LOAD}
    found |= {store.src[0]: True for store in stores}
    return {index: is_written for index, is_written in found.items() if is_far(index, target)}


def _inline_nodes(stores: list[UOp]) -> list[UOp]:
    """What stores compute themselves, with the sums and the scratch that this is made of."""
    values = [store.src[1].toposort(stop=_has_own_loops) for store in stores]
    return [node for own in values for node in own]


def one_per_cache_line(
    place: Linear, itemsize: int, steps: Sequence[UnrollCopy], target: Target
) -> Sequence[UnrollCopy]:
    """Those of the steps that reach another line of memory than all before them."""
    away = {atom: factor for atom, factor in place.terms.items() if atom not in steps[0]}
    if divisor(Linear(away, place.constant)) * itemsize % target.line_bytes:
        return steps  # lines may begin anywhere
    found: dict[int, UnrollCopy] = {}
    for step in steps:
        found.setdefault(_offset(place, step) * itemsize // target.line_bytes, step)
    return list(found.values())


def _offset(place: Linear, step: Mapping[UOp, int]) -> int:
    """How far a step is away from where all of them are 0."""
    return sum([factor * step.get(atom, 0) for atom, factor in place.terms.items()])


def epilogue_loops(stores: list[UOp]) -> tuple[UOp, ...]:
    """The innermost loops of stores, if their long sums are all in scratch when these begin."""
    sums = [node for store in stores for node in store.src[1].toposort() if _is_staged_sum(node)]
    inside = {r for kept in sums for r in kept.ranges}
    found: list[UOp] = []
    for r in reversed(loops_of(stores[0].bound) if sums else ()):
        if r in inside:
            break
        found.append(r)
    return tuple(found[::-1])


def _is_staged_sum(node: UOp) -> bool:
    """Is it scratch for the sums of a tile?"""
    if node.op is not Ops.STAGE or not _is_long_sum(node.src[0]):
        return False
    return all(r.kind.is_unrolled for r in node.bound)


def _has_own_loops(node: UOp) -> bool:
    """Is a value computed in loops of its own, which are closed where the stores are?"""
    return node.op in OPS_WITH_OWN_LOOPS


def _is_long_sum(node: UOp) -> bool:
    if node.op is not Ops.REDUCE:
        return False
    return prod(r.size for r in node.bound if r.kind is AxisKind.REDUCE) >= MIN_SUM_STEPS
