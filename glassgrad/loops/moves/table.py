"""What each move does to a nest: legality and effect in one place, with a picture."""

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
from glassgrad.ir.staged import carried_over
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.strides import written_stride
from glassgrad.ir.uop import UOp, const, make_range, toposort
from glassgrad.loops.analysis.mask_bounds import cut
from glassgrad.loops.moves.accumulate import accumulate
from glassgrad.loops.moves.attention_backward import sweep
from glassgrad.loops.moves.cache_read import window
from glassgrad.loops.moves.coalesce import join
from glassgrad.loops.moves.dot import dot
from glassgrad.loops.moves.k_block import partial
from glassgrad.loops.moves.lanes import as_lanes, meets_lanes
from glassgrad.loops.moves.online_softmax import carry
from glassgrad.loops.moves.pack import stage
from glassgrad.loops.moves.row_block import block
from glassgrad.loops.moves.skip import FACTORS, skip
from glassgrad.loops.moves.split_epilogue import apart
from glassgrad.loops.nest import (
    axes,
    blocks,
    blocks_of,
    change_kind,
    exchange,
    exchange_all,
    find_axis,
    is_added_to,
    is_reduced,
    is_scanned,
    may_repeat,
    next_number,
    reorder,
)  # fmt: skip
from glassgrad.loops.opts import Opt, OptOps, require

Move = Callable[[Nest, UOp, Any, Target], Nest]
MOST_DIVIDED = 2  # loops
IN_PLACE = frozenset((OptOps.STAGE, OptOps.WINDOW))  # moves that leave the axis as it is
LIMITING = frozenset((OptOps.CARRY, OptOps.SWEEP))  # moves that say themselves where loops end
ANY_SIZE = IN_PLACE | {OptOps.SWAP}  # the axis may have


@lru_cache(maxsize=64)
def apply_opt(nest: Nest, opt: Opt, target: Target) -> Nest:
    """The nest after one move; IllegalMove if it cannot be made.

    Who chooses a recipe makes its moves to see what comes of them, and then they are made again.
    """
    axis = _movable(nest, opt)
    moved = MOVES[opt.op](nest, axis, opt.arg, target)
    if nest.limits and opt.op not in LIMITING:
        moved = replace(moved, limits=cut(nest.limits, opt, moved))
    return replace(moved, recipe=(*nest.recipe, opt))


def _movable(nest: Nest, opt: Opt) -> UOp:
    """The axis of a move, if it may be moved at all."""
    axis = find_axis(nest, opt.axis)
    if opt.op not in ANY_SIZE:
        require(axis.src[0].is_const, "the size of this axis is known only at launch")
    added = [b for b in blocks(nest, axis) if b.op is Ops.STORE and b.arg is not None]
    is_apart = axis in nest.outer or all(written_stride(block, axis) for block in added)
    require(is_apart, "additions to one place happen in order")
    stages = [node for node in blocks_of(nest.body) if node.op is Ops.STAGE]
    is_carried = any(axis in carried_over(stage) for stage in stages)
    require(not is_carried or opt.op in IN_PLACE, "what is carried goes from block to block")
    return axis


def apply_moves(nest: Nest, recipe: tuple[Opt, ...], target: Target) -> Nest:
    """The nest after all moves; neighbours that cut an axis evenly each are made in one walk."""
    while recipe:
        count = _even_cuts(nest, recipe)
        if count > 1:
            nest = upcast_all(nest, recipe[:count])
        else:
            nest = apply_opt(nest, recipe[0], target)
        recipe = recipe[max(count, 1) :]
    return nest


def _even_cuts(nest: Nest, recipe: tuple[Opt, ...]) -> int:
    """How many moves at the beginning of a recipe put all of an axis, or equal parts, into
    registers, another axis each; none where loops end early, as each move says where then.
    """
    if nest.limits or len(recipe) == 1:
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
    number = next_number(nest)
    changes: dict[UOp, tuple[tuple[UOp, ...], UOp]] = {}
    for opt in opts:
        axis = _movable(nest, opt)
        _require_upcast(nest, axis)
        require(axis.size > 1, f"{axis.size} does not fit an axis of {axis.size}")
        fine = make_range(number + len(changes), opt.arg, AxisKind.UPCAST)
        if opt.arg == axis.size:
            changes[axis] = ((fine,), fine)
        else:
            coarse = make_range(axis.axis, axis.size // opt.arg, axis.kind)
            changes[axis] = ((coarse, fine), add(scale(coarse, opt.arg), fine))
    return replace(exchange_all(nest, changes), recipe=(*nest.recipe, *opts))


# ---------------------------------------------------------------------- splitting an axis


def split(nest: Nest, axis: UOp, amount: int, inner: AxisKind, outer: AxisKind) -> Nest:
    """for i in n  ->  for o in n/f: for i in f; a tail moves inwards or is peeled"""
    size = axis.size
    require(1 < amount <= size, f"{amount} does not fit an axis of {size}")
    if size % amount and is_reduced(nest, axis):
        return _split_reduction(nest, axis, amount, inner, outer)
    number = next_number(nest)
    fine = make_range(number, amount, inner)
    if size == amount:
        return exchange(nest, axis, (fine,), fine)
    coarse = make_range(axis.axis, -(-size // amount), outer)
    start = scale(coarse, amount)
    if size % amount:
        require(not is_scanned(nest, axis), "no step of a scan is done twice")
        require(may_repeat(nest, axis), "storing an element twice would read what was written")
        require(not is_added_to(nest, axis), "nothing is added twice to what is carried")
        if outer is AxisKind.GLOBAL:
            require(not _reads_back(nest), "two groups would store what one of them reads again")
        start = minimum(start, const(size - amount))
    return exchange(nest, axis, (coarse, fine), add(start, fine))


def _reads_back(nest: Nest) -> bool:
    """Is something that was stored read again, by the iteration that stored it?"""
    nodes = nest.body.toposort()
    return any(node.op is Ops.INDEX and node.src[0].op is Ops.STORE for node in nodes)


def _split_reduction(nest: Nest, axis: UOp, amount: int, inner: AxisKind, outer: AxisKind) -> Nest:
    """sum over n  ->  sum over (n/f)·f, plus sum over the rest"""
    whole = axis.size // amount * amount
    number = next_number(nest)
    main = make_range(axis.axis, whole, axis.kind)
    rest = make_range(number, axis.size - whole, axis.kind)
    done: dict[UOp, UOp] = {}
    for node in nest.body.toposort():
        same = rebuilt(node, done)
        if node.op is Ops.REDUCE and axis in node.bound:
            one, two = [
                _over(same, axis, part, offset) for part, offset in ((main, 0), (rest, whole))
            ]
            same = one.alu(node.arg, two)
        done[node] = same
    peeled = replace(nest, body=done[nest.body])
    return split(peeled, main, amount, inner, outer)


def _over(reduce: UOp, axis: UOp, part: UOp, offset: int) -> UOp:
    """The same reduction over a part of an axis."""
    loops = tuple([part if r is axis else r for r in reduce.bound])
    lone = Nest(UOp(Ops.SINK, dtypes.void, (reduce.src[0],)))
    body = exchange(lone, axis, (part,), add(part, offset)).body.src[0]
    return UOp(Ops.REDUCE, reduce.dtype, (body, *loops), reduce.arg)


def upcast(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """for i in n: y[i] = f(x[i])  ->  for o in n/4: y[4o] = f(x[4o]); … y[4o+3] = f(x[4o+3])"""
    _require_upcast(nest, axis)
    return split(nest, axis, amount or axis.size, AxisKind.UPCAST, axis.kind)


def _require_upcast(nest: Nest, axis: UOp) -> None:
    require(not is_reduced(nest, axis), "a reduction is unrolled with UNROLL")
    require(not axis.kind.is_unrolled, "this axis is unrolled already")
    require(axis.kind is not AxisKind.CORE, "upcast an axis before it is divided among cores")
    scans = [block for block in blocks(nest, axis) if block.op is Ops.SCAN]
    require(all(scan.bound[-1] is axis for scan in scans), "steps that follow each other only")


def unroll(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """for k in n: s += x[k]  ->  for o in n/4: s += x[4o]; … s += x[4o+3]"""
    require(is_reduced(nest, axis), "only reductions are unrolled; use UPCAST")
    require(axis.kind is AxisKind.REDUCE, "this axis is unrolled already")
    return split(nest, axis, amount or axis.size, AxisKind.UNROLL, axis.kind)


def lanes(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """y[0] = …; … y[15] = …  ->  y[0:8] = …; y[8:16] = …, also where y does not lie in a row"""
    require(axis.kind is AxisKind.UPCAST, "only registers become lanes")
    fits = 1 < amount <= target.vector_bytes and axis.size % amount == 0
    require(fits, f"{axis.size} registers are no vectors of {amount}")
    require(not meets_lanes(blocks_of(nest.body), axis), "there are lanes already")
    return as_lanes(nest, {axis: amount})


def tile(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """for i in n  ->  for o in n/f: for i in f"""
    require(axis.kind in (AxisKind.LOOP, AxisKind.REDUCE), "only plain loops are tiled")
    return split(nest, axis, amount, axis.kind, axis.kind)


# ---------------------------------------------------------------------- order and place


def swap(nest: Nest, axis: UOp, other: Any, target: Target) -> Nest:
    """for i: for j: …  ->  for j: for i: …"""
    partner = find_axis(nest, other)
    require(partner is not axis, "an axis does not change places with itself")
    is_ordered = is_scanned(nest, axis) or is_scanned(nest, partner)
    require(not is_ordered, "a scan runs inside of all other loops")
    both_outer = axis in nest.outer and partner in nest.outer
    one, two = blocks(nest, axis), blocks(nest, partner)
    inner = one == two and axis not in nest.outer and partner not in nest.outer
    require(both_outer or inner, "only loops of one nest change places")
    require(AxisKind.CORE not in (axis.kind, partner.kind), "the loop over cores stays outermost")
    return reorder(nest, {axis: partner, partner: axis})


def core(nest: Nest, axis: UOp, arg: Any, target: Target) -> Nest:
    """for i: for j: …  ->  for j, divided among cores: for i: …

    A second one counts the steps of both: for j, i, divided among cores: …
    """
    require(not target.has_threads, "this machine has threads, not cores")
    require(axis in nest.outer, "only a loop that all statements share is divided among cores")
    require(axis.kind is AxisKind.LOOP, "this axis is not a plain loop")
    require(not is_scanned(nest, axis), "the steps of a scan are done in order")
    divided = [r for r in nest.outer if r.kind is AxisKind.CORE]
    require(len(divided) < MOST_DIVIDED, "enough loops are divided already")
    require(not divided or axis.src[0].is_const, "how often it runs is known at launch only")
    rest = [r for r in nest.outer if r is not axis and r not in divided]
    moved = reorder(nest, dict(zip(nest.outer, (*divided, axis, *rest), strict=True)))
    return change_kind(moved, axis, AxisKind.CORE)


def local(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """group g does element g  ->  group g does 16 elements, thread l element 16g + l"""
    require(target.has_threads, "this machine has cores, not threads")
    require(axis.kind is AxisKind.GLOBAL, "only a global axis has threads")
    require(axis.size % amount == 0, f"{amount} threads do not divide {axis.size}")
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
    """sum over k  ->  thread t sums k = t, t+n, t+2n, …; then all threads' sums are summed"""
    return _share(nest, axis, amount, target, lambda part, turn: add(scale(turn, amount), part))


def group_top(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """sum over k  ->  thread t sums the t-th run of k; then all threads' sums are summed"""
    turns = axis.size // max(amount, 1)
    return _share(nest, axis, amount, target, lambda part, turn: add(scale(part, turns), turn))


def _share(
    nest: Nest, axis: UOp, amount: int, target: Target, place: Callable[[UOp, UOp], UOp]
) -> Nest:
    owners = blocks(nest, axis)
    require(len(owners) == 1 and is_reduced(nest, axis), "only a reduction is shared")
    require(axis.kind is AxisKind.REDUCE, "this axis is unrolled")
    require(axis.src[0].is_const, "the size of this axis is not constant")
    require(1 < amount <= axis.size and axis.size % amount == 0, f"{amount} does not divide it")
    (owner,) = owners
    require(not any(r.kind.is_unrolled for r in owner.ranges), "share before unrolling")
    kind = AxisKind.GROUP if target.has_threads else AxisKind.LOOP
    if target.has_threads:
        require(_threads(nest) * amount <= target.group_size, "too many threads in a group")
        require(not _is_shared(nest), "one reduction is shared already")
        require(not _rereads(nest), "no thread waits for what another one stores")
    number = next_number(nest)
    part, last = make_range(number, amount, kind), make_range(number + 1, amount, AxisKind.REDUCE)
    turn = make_range(axis.axis, axis.size // amount, AxisKind.REDUCE)
    lone = Nest(UOp(Ops.SINK, dtypes.void, (owner.src[0],)))
    body = exchange(lone, axis, (turn,), place(part, turn)).body.src[0]
    loops = tuple([turn if r is axis else r for r in owner.bound])
    if axis.size == amount:
        body, loops = body.substitute({turn: ZERO}), tuple([r for r in loops if r is not turn])
    partial = UOp(Ops.REDUCE, owner.dtype, (body, *loops), owner.arg) if loops else body
    kept = UOp(Ops.STAGE, owner.dtype, (partial, part, part), (amount,))
    again = UOp(Ops.REDUCE, owner.dtype, (kept.index(last).load(), last), owner.arg)
    return replace(nest, body=nest.body.substitute({owner: again}))


def _rereads(nest: Nest) -> bool:
    """Is anything read that is also written here?"""
    return nest.rewrites or _reads_back(nest)


def _is_shared(nest: Nest) -> bool:
    return any(n.op is Ops.RANGE and n.kind is AxisKind.GROUP for n in nest.body.toposort())


# ---------------------------------------------------------------------- padding


def pad_to(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """for i in 5: y[i] = x[i]  ->  for i in 8: if i < 5: y[i] = x[i]"""
    require(axis.src[0].is_const, "the size of this axis is not constant")
    require(amount > 1 and axis.size % amount != 0, "this axis needs no padding")
    require(axis.kind in (AxisKind.LOOP, AxisKind.REDUCE, AxisKind.GLOBAL), "pad before splitting")
    owners = blocks(nest, axis)
    require(all(o.op is not Ops.STAGE for o in owners), "scratch is filled without conditions")
    scans = [owner for owner in owners if owner.op is Ops.SCAN]
    require(all(s.bound[0] is axis for s in scans), "what a scan goes through has no holes")
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
    """Memory is only touched where the axis is valid; a reduction takes nothing from elsewhere."""
    if node.op is Ops.INDEX and axis in before.ranges:
        gate = valid if node.gate is None else node.gate & valid
        return node.src[0].index(*node.indices, gate=gate)
    if node.op is Ops.REDUCE and axis in before.bound and not _adds_zeros(before, axis):
        nothing = const(identity(node.arg, node.dtype), node.dtype)
        return UOp(node.op, node.dtype, (valid.where(node.src[0], nothing), *node.bound), node.arg)
    return node


def _adds_zeros(reduce: UOp, axis: UOp) -> bool:
    """Is what is added a product of elements that are all 0 where they are not read?"""
    nodes = reduce.value.toposort(stop=lambda node: node.op is Ops.LOAD)
    return reduce.arg is Ops.ADD and all(n.op in FACTORS and axis in n.ranges for n in nodes)


MOVES: dict[OptOps, Move] = {
    OptOps.UPCAST: upcast,
    OptOps.UNROLL: unroll,
    OptOps.DOT: dot,
    OptOps.LANES: lanes,
    OptOps.TILE: tile,
    OptOps.JOIN: join,
    OptOps.SWAP: swap,
    OptOps.CORE: core,
    OptOps.LOCAL: local,
    OptOps.GROUP: group,
    OptOps.GROUPTOP: group_top,
    OptOps.PADTO: pad_to,
    OptOps.STAGE: stage,
    OptOps.WINDOW: window,
    OptOps.ACCUMULATE: accumulate,
    OptOps.BLOCK: block,
    OptOps.PARTIAL: partial,
    OptOps.APART: apart,
    OptOps.CARRY: carry,
    OptOps.SWEEP: sweep,
    OptOps.SKIP: skip,
}
