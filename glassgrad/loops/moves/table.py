"""The implementation of every move: its legality and its effect, with a picture."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from glassgrad.base.dtype import dtypes
from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.linear import add, minimum, scale
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.staged import carried_loops
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.strides import written_stride
from glassgrad.ir.traverse import transform
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.loops.analysis.mask_bounds import update_mask_bounds
from glassgrad.loops.moves.accumulate import accumulate
from glassgrad.loops.moves.attention_backward import attention_backward
from glassgrad.loops.moves.cache_read import cache_read
from glassgrad.loops.moves.coalesce import coalesce
from glassgrad.loops.moves.dot import dot
from glassgrad.loops.moves.k_block import k_block
from glassgrad.loops.moves.lanes import as_lanes, conflicts_with_lanes
from glassgrad.loops.moves.online_softmax import online_softmax
from glassgrad.loops.moves.pack import pack
from glassgrad.loops.moves.pad import pad_to
from glassgrad.loops.moves.row_block import row_block
from glassgrad.loops.moves.skip_zeros import skip_zeros
from glassgrad.loops.moves.split_epilogue import split_epilogue
from glassgrad.loops.moves.thread_reduction import (
    count_threads,
    group,
    group_top,
    reads_own_stores,
)
from glassgrad.loops.nest import (
    accumulates_in_scratch,
    axes,
    binders_of,
    binders_over,
    change_kind,
    find_axis,
    is_idempotent,
    is_reduced,
    is_scanned,
    next_axis_number,
    reorder,
    substitute_axes,
    substitute_axis,
)  # fmt: skip
from glassgrad.loops.opts import Opt, OptOps, require

Move = Callable[[Nest, UOp, Any, Target], Nest]
MAX_DIVIDED_LOOPS = 2  # a second loop shares uneven work better; the launcher counts at most two
KEEPS_AXIS = frozenset((OptOps.PACK, OptOps.CACHE_READ))  # moves that do not change the axis
# moves that compute mask bounds anew
SETS_MASK_BOUNDS = frozenset((OptOps.ONLINE_SOFTMAX, OptOps.ATTENTION_BACKWARD))
ALLOWS_DYNAMIC_SIZE = KEEPS_AXIS | {OptOps.SWAP}


@lru_cache(maxsize=64)
def apply_opt(nest: Nest, opt: Opt, target: Target) -> Nest:
    """The nest after one move; IllegalMove if it is not legal. Cached: searches repeat common
    prefixes.
    """
    axis = _require_movable(nest, opt)
    moved = MOVES[opt.op](nest, axis, opt.arg, target)
    if nest.mask_bounds and opt.op not in SETS_MASK_BOUNDS:
        moved = replace(moved, mask_bounds=update_mask_bounds(nest.mask_bounds, opt, moved))
    return replace(moved, recipe=(*nest.recipe, opt))


def _require_movable(nest: Nest, opt: Opt) -> UOp:
    """The axis of a move; IllegalMove if no move of this kind may change it."""
    axis = find_axis(nest, opt.axis)
    if opt.op not in ALLOWS_DYNAMIC_SIZE:
        require(axis.src[0].is_const, "this move needs an axis of constant size")
    accumulating = [
        binder
        for binder in binders_over(nest, axis)
        if binder.op is Ops.STORE and binder.arg is not None
    ]
    is_distinct = axis in nest.outer or all(written_stride(binder, axis) for binder in accumulating)
    require(is_distinct, "this axis accumulates into one element, in order")
    stages = [node for node in binders_of(nest.body) if node.op is Ops.STAGE]
    is_carried = any(axis in carried_loops(stage) for stage in stages)
    require(not is_carried or opt.op in KEEPS_AXIS, "this axis carries scratch from block to block")
    return axis


def apply_moves(nest: Nest, recipe: tuple[Opt, ...], target: Target) -> Nest:
    """The nest after all moves. Consecutive UPCASTs that divide distinct axes evenly are applied in
    one traversal.
    """
    while recipe:
        count = _count_even_upcasts(nest, recipe)
        if count > 1:
            nest = upcast_all(nest, recipe[:count])
        else:
            nest = apply_opt(nest, recipe[0], target)
        recipe = recipe[max(count, 1) :]
    return nest


def _count_even_upcasts(nest: Nest, recipe: tuple[Opt, ...]) -> int:
    """The number of leading UPCASTs that evenly divide distinct axes; 0 if the nest has mask
    bounds, which each move updates.
    """
    if nest.mask_bounds or len(recipe) == 1:
        return 0
    sizes = {r.axis: r.size for r in axes(nest) if r.src[0].is_const}
    for count, opt in enumerate(recipe):
        size = sizes.pop(opt.axis, None)
        is_upcast = opt.op is OptOps.UPCAST and isinstance(opt.arg, int) and opt.arg > 1
        if not is_upcast or size is None or size % opt.arg:
            return count
    return len(recipe)


@lru_cache(maxsize=64)
def upcast_all(nest: Nest, opts: tuple[Opt, ...]) -> Nest:
    """for i in 2: for j in 8: y[i, j] = …  ->  for j in 2: y[0, 4j] = …; … y[1, 4j+3] = …"""
    number = next_axis_number(nest)
    changes: dict[UOp, tuple[tuple[UOp, ...], UOp]] = {}
    for opt in opts:
        axis = _require_movable(nest, opt)
        _require_upcast(nest, axis)
        require(axis.size > 1, f"{axis.size} does not fit an axis of {axis.size}")
        fine = make_range(number + len(changes), opt.arg, AxisKind.UPCAST)
        if opt.arg == axis.size:
            changes[axis] = ((fine,), fine)
        else:
            coarse = make_range(axis.axis, axis.size // opt.arg, axis.kind)
            changes[axis] = ((coarse, fine), add(scale(coarse, opt.arg), fine))
    return replace(substitute_axes(nest, changes), recipe=(*nest.recipe, *opts))


# ---------------------------------------------------------------------- splitting an axis


def split(nest: Nest, axis: UOp, amount: int, inner: AxisKind, outer: AxisKind) -> Nest:
    """for i in n  ->  for o in n/f: for i in f; the tail overlaps its neighbour or is peeled"""
    size = axis.size
    require(1 < amount <= size, f"{amount} does not fit an axis of {size}")
    if size % amount and is_reduced(nest, axis):
        return _split_reduction(nest, axis, amount, inner, outer)
    number = next_axis_number(nest)
    fine = make_range(number, amount, inner)
    if size == amount:
        return substitute_axis(nest, axis, (fine,), fine)
    coarse = make_range(axis.axis, -(-size // amount), outer)
    start = scale(coarse, amount)
    if size % amount:
        require(not is_scanned(nest, axis), "an overlapping tail would repeat steps of a scan")
        require(
            is_idempotent(nest, axis),
            "an overlapping tail would read elements that it has overwritten",
        )
        require(
            not accumulates_in_scratch(nest, axis), "an overlapping tail would accumulate twice"
        )
        if outer is AxisKind.GLOBAL:
            require(
                not reads_own_stores(nest),
                "two thread groups would store elements that one of them reads back",
            )
        start = minimum(start, const(size - amount))
    return substitute_axis(nest, axis, (coarse, fine), add(start, fine))


def _split_reduction(nest: Nest, axis: UOp, amount: int, inner: AxisKind, outer: AxisKind) -> Nest:
    """sum over n  ->  sum over (n/f)·f, plus sum over the tail"""
    main_size = axis.size // amount * amount
    number = next_axis_number(nest)
    main = make_range(axis.axis, main_size, axis.kind)
    tail = make_range(number, axis.size - main_size, axis.kind)

    def peel(node: UOp, rebuilt: UOp) -> UOp:
        if node.op is not Ops.REDUCE or axis not in node.bound:
            return rebuilt
        whole = _reduce_over(rebuilt, axis, main, 0)
        return whole.alu(node.arg, _reduce_over(rebuilt, axis, tail, main_size))

    peeled = replace(nest, body=transform(nest.body, peel))
    return split(peeled, main, amount, inner, outer)


def _reduce_over(reduce: UOp, axis: UOp, part: UOp, offset: int) -> UOp:
    """The reduction over one part of its axis."""
    loops = tuple([part if r is axis else r for r in reduce.bound])
    alone = Nest(UOp(Ops.SINK, dtypes.void, (reduce.src[0],)))
    body = substitute_axis(alone, axis, (part,), add(part, offset)).body.src[0]
    return UOp(Ops.REDUCE, reduce.dtype, (body, *loops), reduce.arg)


def upcast(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """for i in n: y[i] = f(x[i])  ->  for o in n/4: y[4o] = f(x[4o]); … y[4o+3] = f(x[4o+3])"""
    _require_upcast(nest, axis)
    return split(nest, axis, amount or axis.size, AxisKind.UPCAST, axis.kind)


def _require_upcast(nest: Nest, axis: UOp) -> None:
    require(
        not is_reduced(nest, axis), "UPCAST needs an output axis; unroll a reduction with UNROLL"
    )
    require(not axis.kind.is_unrolled, "this axis is unrolled already")
    require(axis.kind is not AxisKind.CORE, "UPCAST must come before CORE")
    scans = [binder for binder in binders_over(nest, axis) if binder.op is Ops.SCAN]
    require(
        all(scan.bound[-1] is axis for scan in scans),
        "only the last axis of a scan can be unrolled",
    )


def unroll(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """for k in n: s += x[k]  ->  for o in n/4: s += x[4o]; … s += x[4o+3]"""
    require(is_reduced(nest, axis), "UNROLL needs a reduction; unroll an output axis with UPCAST")
    require(axis.kind is AxisKind.REDUCE, "this axis is unrolled already")
    return split(nest, axis, amount or axis.size, AxisKind.UNROLL, axis.kind)


def lanes(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """y[0] = …; … y[15] = …  ->  y[0:8] = …; y[8:16] = …, for y of any stride"""
    require(axis.kind is AxisKind.UPCAST, "LANES needs an axis unrolled by UPCAST")
    fits = 1 < amount <= target.vector_bytes and axis.size % amount == 0
    require(fits, f"{axis.size} elements do not divide into vectors of {amount}")
    require(not conflicts_with_lanes(binders_of(nest.body), axis), "another axis already has lanes")
    return as_lanes(nest, {axis: amount})


def tile(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """for i in n  ->  for o in n/f: for i in f"""
    require(axis.kind in (AxisKind.LOOP, AxisKind.REDUCE), "TILE needs a plain loop")
    return split(nest, axis, amount, axis.kind, axis.kind)


# ---------------------------------------------------------------------- loop order, cores, threads


def swap(nest: Nest, axis: UOp, other: Any, target: Target) -> Nest:
    """for i: for j: …  ->  for j: for i: …"""
    partner = find_axis(nest, other)
    require(partner is not axis, "SWAP needs two different axes")
    is_ordered = is_scanned(nest, axis) or is_scanned(nest, partner)
    require(not is_ordered, "a scan must stay inside of all other loops")
    both_outer = axis in nest.outer and partner in nest.outer
    first, second = binders_over(nest, axis), binders_over(nest, partner)
    both_inner = first == second and axis not in nest.outer and partner not in nest.outer
    require(both_outer or both_inner, "the two loops do not belong to the same loop nest")
    require(
        AxisKind.CORE not in (axis.kind, partner.kind), "the loop over cores must stay outermost"
    )
    return reorder(nest, {axis: partner, partner: axis})


def core(nest: Nest, axis: UOp, arg: Any, target: Target) -> Nest:
    """for i: for j: …  ->  for j, divided among cores: for i: …

    A second divided loop runs over the product of both: for (j, i), divided among cores: …
    """
    require(not target.has_threads, "this machine has threads, not cores")
    require(axis in nest.outer, "CORE needs a loop that all statements share")
    require(axis.kind is AxisKind.LOOP, "CORE needs a plain loop")
    require(not is_scanned(nest, axis), "the steps of a scan must run in order")
    divided = [r for r in nest.outer if r.kind is AxisKind.CORE]
    require(
        len(divided) < MAX_DIVIDED_LOOPS,
        f"{MAX_DIVIDED_LOOPS} loops are already divided among cores",
    )
    require(not divided or axis.src[0].is_const, "a second divided loop needs a constant size")
    rest = [r for r in nest.outer if r is not axis and r not in divided]
    moved = reorder(nest, dict(zip(nest.outer, (*divided, axis, *rest), strict=True)))
    return change_kind(moved, axis, AxisKind.CORE)


def local(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """group g computes element g  ->  thread l of group g computes element 16g + l"""
    require(target.has_threads, "this machine has cores, not threads")
    require(axis.kind is AxisKind.GLOBAL, "LOCAL needs a grid axis")
    require(axis.size % amount == 0, f"{amount} threads do not evenly divide {axis.size}")
    require(count_threads(nest) * amount <= target.group_size, "too many threads in a group")
    return split(nest, axis, amount, AxisKind.LOCAL, AxisKind.GLOBAL)


MOVES: dict[OptOps, Move] = {
    OptOps.UPCAST: upcast,
    OptOps.UNROLL: unroll,
    OptOps.DOT: dot,
    OptOps.LANES: lanes,
    OptOps.TILE: tile,
    OptOps.COALESCE: coalesce,
    OptOps.SWAP: swap,
    OptOps.CORE: core,
    OptOps.LOCAL: local,
    OptOps.GROUP: group,
    OptOps.GROUPTOP: group_top,
    OptOps.PADTO: pad_to,
    OptOps.PACK: pack,
    OptOps.CACHE_READ: cache_read,
    OptOps.ACCUMULATE: accumulate,
    OptOps.ROW_BLOCK: row_block,
    OptOps.K_BLOCK: k_block,
    OptOps.SPLIT_EPILOGUE: split_epilogue,
    OptOps.ONLINE_SOFTMAX: online_softmax,
    OptOps.ATTENTION_BACKWARD: attention_backward,
    OptOps.SKIP_ZEROS: skip_zeros,
}
