"""The implementation of every move: its legality and its effect, with a picture."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from glassgrad.base.dtype import dtypes
from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.divmod import less
from glassgrad.ir.facts import identity, rebuilt
from glassgrad.ir.linear import ZERO, add, minimum, scale
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.staged import carried_loops
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.strides import written_stride
from glassgrad.ir.uop import UOp, const, make_range, toposort
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
from glassgrad.loops.moves.row_block import row_block
from glassgrad.loops.moves.skip_zeros import FACTOR_OPS, skip_zeros
from glassgrad.loops.moves.split_epilogue import split_epilogue
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
        is_cut = opt.op is OptOps.UPCAST and isinstance(opt.arg, int) and opt.arg > 1
        if not is_cut or size is None or size % opt.arg:
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
                not _reads_own_stores(nest),
                "two thread groups would store elements that one of them reads back",
            )
        start = minimum(start, const(size - amount))
    return substitute_axis(nest, axis, (coarse, fine), add(start, fine))


def _reads_own_stores(nest: Nest) -> bool:
    """True if an iteration reads back what it stored."""
    nodes = nest.body.toposort()
    return any(node.op is Ops.INDEX and node.src[0].op is Ops.STORE for node in nodes)


def _split_reduction(nest: Nest, axis: UOp, amount: int, inner: AxisKind, outer: AxisKind) -> Nest:
    """sum over n  ->  sum over (n/f)·f, plus sum over the tail"""
    main_size = axis.size // amount * amount
    number = next_axis_number(nest)
    main = make_range(axis.axis, main_size, axis.kind)
    tail = make_range(number, axis.size - main_size, axis.kind)
    done: dict[UOp, UOp] = {}
    for node in nest.body.toposort():
        rebuilt_node = rebuilt(node, done)
        if node.op is Ops.REDUCE and axis in node.bound:
            left, right = [
                _reduce_over(rebuilt_node, axis, part, offset)
                for part, offset in ((main, 0), (tail, main_size))
            ]
            rebuilt_node = left.alu(node.arg, right)
        done[node] = rebuilt_node
    peeled = replace(nest, body=done[nest.body])
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


# ---------------------------------------------------------------------- order and place


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
    require(_threads(nest) * amount <= target.group_size, "too many threads in a group")
    return split(nest, axis, amount, AxisKind.LOCAL, AxisKind.GLOBAL)


def _threads(nest: Nest) -> int:
    count = 1
    for node in nest.body.toposort():
        if node.op is Ops.RANGE and node.kind in (AxisKind.LOCAL, AxisKind.GROUP):
            count *= node.size
    return count


# ---------------------------------------------------------------------- shared reductions


def group(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """sum over k  ->  thread t sums k = t, t+n, t+2n, …; then the partial sums are summed"""
    return _divide_reduction(
        nest, axis, amount, target, lambda thread, step: add(scale(step, amount), thread)
    )


def group_top(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """sum over k  ->  thread t sums the t-th contiguous part of k; then the partial sums are
    summed
    """
    steps = axis.size // max(amount, 1)
    return _divide_reduction(
        nest, axis, amount, target, lambda thread, step: add(scale(thread, steps), step)
    )


def _divide_reduction(
    nest: Nest, axis: UOp, amount: int, target: Target, index_of: Callable[[UOp, UOp], UOp]
) -> Nest:
    binders = binders_over(nest, axis)
    require(
        len(binders) == 1 and is_reduced(nest, axis), "GROUP needs an axis of exactly one reduction"
    )
    require(axis.kind is AxisKind.REDUCE, "this axis is unrolled")
    require(axis.src[0].is_const, "GROUP needs an axis of constant size")
    require(
        1 < amount <= axis.size and axis.size % amount == 0,
        f"{amount} does not evenly divide {axis.size}",
    )
    (reduce,) = binders
    require(not any(r.kind.is_unrolled for r in reduce.ranges), "GROUP must come before unrolling")
    kind = AxisKind.GROUP if target.has_threads else AxisKind.LOOP
    if target.has_threads:
        require(_threads(nest) * amount <= target.group_size, "too many threads in a group")
        require(not _has_thread_reduction(nest), "one reduction is already divided among threads")
        require(
            not _reads_written_buffers(nest),
            "the nest reads a buffer that another thread may write",
        )
    number = next_axis_number(nest)
    thread, last = make_range(number, amount, kind), make_range(number + 1, amount, AxisKind.REDUCE)
    step = make_range(axis.axis, axis.size // amount, AxisKind.REDUCE)
    alone = Nest(UOp(Ops.SINK, dtypes.void, (reduce.src[0],)))
    body = substitute_axis(alone, axis, (step,), index_of(thread, step)).body.src[0]
    loops = tuple([step if r is axis else r for r in reduce.bound])
    if axis.size == amount:
        body, loops = body.substitute({step: ZERO}), tuple([r for r in loops if r is not step])
    k_block = UOp(Ops.REDUCE, reduce.dtype, (body, *loops), reduce.arg) if loops else body
    stage = UOp(Ops.STAGE, reduce.dtype, (k_block, thread, thread), (amount,))
    total = UOp(Ops.REDUCE, reduce.dtype, (stage.index(last).load(), last), reduce.arg)
    return replace(nest, body=nest.body.substitute({reduce: total}))


def _reads_written_buffers(nest: Nest) -> bool:
    """True if the nest reads anything that it also writes."""
    return nest.rewrites or _reads_own_stores(nest)


def _has_thread_reduction(nest: Nest) -> bool:
    return any(n.op is Ops.RANGE and n.kind is AxisKind.GROUP for n in nest.body.toposort())


# ---------------------------------------------------------------------- padding


def pad_to(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """for i in 5: y[i] = x[i]  ->  for i in 8: if i < 5: y[i] = x[i]"""
    require(axis.src[0].is_const, "GROUP needs an axis of constant size")
    require(amount > 1 and axis.size % amount != 0, "this axis needs no padding")
    require(
        axis.kind in (AxisKind.LOOP, AxisKind.REDUCE, AxisKind.GLOBAL),
        "PADTO must come before other splits",
    )
    binders = binders_over(nest, axis)
    require(
        all(b.op is not Ops.STAGE for b in binders), "a loop that fills scratch cannot be padded"
    )
    scans = [binder for binder in binders if binder.op is Ops.SCAN]
    require(
        all(s.bound[0] is axis for s in scans), "only the outermost axis of a scan can be padded"
    )
    wide = make_range(axis.axis, -(-axis.size // amount) * amount, axis.kind)
    valid = less(wide, axis.size)
    done: dict[UOp, UOp] = {axis: wide}
    for node in toposort((nest.body,), stop=done.__contains__):
        if node in done:
            continue
        same = rebuilt(node, done)
        done[node] = _masked(node, same, axis, valid)
    outer = tuple([wide if r is axis else r for r in nest.outer])
    return replace(nest, body=done[nest.body], outer=outer)


def _masked(before: UOp, node: UOp, axis: UOp, valid: UOp) -> UOp:
    """Gate memory accesses by `valid`; where it is false, a reduction combines its identity."""
    if node.op is Ops.INDEX and axis in before.ranges:
        gate = valid if node.gate is None else node.gate & valid
        return node.src[0].index(*node.indices, gate=gate)
    if node.op is Ops.REDUCE and axis in before.bound and not _adds_only_zeros(before, axis):
        neutral = const(identity(node.arg, node.dtype), node.dtype)
        return UOp(node.op, node.dtype, (valid.where(node.src[0], neutral), *node.bound), node.arg)
    return node


def _adds_only_zeros(reduce: UOp, axis: UOp) -> bool:
    """True if the sum adds products whose loads are all 0 outside of the axis."""
    nodes = reduce.value.toposort(stop=lambda node: node.op is Ops.LOAD)
    return reduce.arg is Ops.ADD and all(n.op in FACTOR_OPS and axis in n.ranges for n in nodes)


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
