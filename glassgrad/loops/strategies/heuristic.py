"""Nest -> Recipe: a choice from strides, reuse and sizes; nothing here knows an op by name."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from math import prod

from glassgrad.ir.divmod import conditions_of
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.strides import stride, written_stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.moves.lanes import NEAR
from glassgrad.loops.nest import axes, blocks, find_axis, is_scanned, may_repeat, next_number
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.attention import rows_recipe
from glassgrad.loops.strategies.column_sums import collect_in_memory
from glassgrad.loops.strategies.epilogue import shorten_epilogue
from glassgrad.loops.strategies.gemm import contraction_recipe
from glassgrad.loops.strategies.multi_stream import LINE, read_side_by_side, rows_at_once
from glassgrad.loops.strategies.packing import (
    copy_in_vectors,
    pack_across,
    pack_in_turn,
    pack_side_by_side,
)
from glassgrad.loops.strategies.prefetch_split import take_turns
from glassgrad.loops.strategies.recipe_builder import HEAVIEST, MAX_UNROLLED, Draft

SHORT = 16  # a reduction of so few steps has no loop
MASKED = 8  # vectors of a padded row that are written out, whatever is computed
MOST_MASKED = 96  # the same, with every step of a reduction counted
EXCHANGED = 2  # elements that change places: all of them at once
STEP_NS = 0.15  # one step of an inner loop, very roughly
MOST_THREADS = 256  # in a group
FEW_GROUPS = 256  # leave a GPU idle: then threads share a reduction
SHARING = 16  # threads that do
LONG = 256  # steps of a reduction that is worth it
THREAD_ELEMENTS = 4  # that a thread computes: one load of a GPU


def heuristic(nest: Nest, target: Target) -> tuple[Opt, ...]:
    """Moves that suit this nest on this machine."""
    draft = Draft(nest, target)
    if target.has_threads:
        _use_threads(draft)
    elif (products := rows_recipe(draft)) is not None:
        _use_vectors(draft, products)
    elif (loops := collect_in_memory(draft)) is None and contraction_recipe(draft):
        copy_in_vectors(draft)
        pack_across(draft)
        pack_in_turn(draft)
        pack_side_by_side(draft)
    else:
        _use_vectors(draft, loops or set())
        _use_cores(draft)
    take_turns(draft)
    shorten_epilogue(draft)
    return draft.nest.recipe


# ---------------------------------------------------------------------- vectors


def _use_vectors(draft: Draft, reduced: set[int]) -> None:
    """Every block walks through memory along its unit-stride axis, a few vectors at a time; but
    not those that reduce the axes named here.
    """
    taken: set[int] = set()  # axes whose steps are reductions that have vectors of their own
    while (block := _next_reduction(draft, reduced)) is not None:
        reduced |= {r.axis for r in block.bound}
        taken |= _vectorize_reduction(draft, block)
    draft.attempt_all([Opt(OptOps.UPCAST, axis.axis, axis.size) for axis in _exchanged(draft)])
    for op in (Ops.STORE, Ops.STAGE):
        while _vectorize_some(draft, op, taken):
            pass


def _vectorize_some(draft: Draft, op: Ops, taken: set[int]) -> bool:
    """Vectors along what is written: for all blocks up to one that wants more than one move. False
    if there is none left.
    """
    cuts: dict[UOp, int] = {}
    other: tuple[UOp, UOp] | None = None
    for block, axis in _written(draft, op, taken):
        if axis in cuts:
            continue
        if not _is_plain(draft, block, axis, cuts):
            other = block, axis
            break
        cuts[axis] = _cut(draft, block, axis, cuts)
    moves = [Opt(OptOps.UPCAST, r.axis, amount) for r, amount in cuts.items() if amount > 1]
    draft.attempt_all(moves)
    taken |= {axis.axis for axis in cuts}
    if other is not None and not cuts:
        taken.add(other[1].axis)
        _vectorize_writes(draft, *other)
    return bool(cuts) or other is not None


def _next_reduction(draft: Draft, done: set[int]) -> UOp | None:
    """A reduction as it is after the moves so far."""
    blocks = draft.blocks(Ops.REDUCE)
    return next((b for b in blocks if done.isdisjoint(r.axis for r in b.bound)), None)


def _exchanged(draft: Draft) -> list[UOp]:
    """Short axes that reads run along both ways: their steps need the same elements."""
    found: dict[UOp, None] = {}
    for block in draft.blocks(Ops.STORE) + draft.blocks(Ops.STAGE):
        short = [r for r in block.bound if r.kind is AxisKind.LOOP and r.size <= EXCHANGED]
        loads = draft.loads(block) if short else []
        for axis in short:
            along = {stride(index, axis) for index in loads}
            if any(step and -step in along for step in along):
                found[axis] = None
    return list(found)


def _written(draft: Draft, op: Ops, done: set[int]) -> Iterator[tuple[UOp, UOp]]:
    """Blocks as they are after the moves so far, and the axes along which they write."""
    for block in draft.blocks(op):
        axis = _written_along(block)
        if axis is not None and axis.kind is AxisKind.LOOP and axis.axis not in done:
            if not _is_for_others(draft, block, axis):
                yield block, axis


def _is_for_others(draft: Draft, block: UOp, axis: UOp) -> bool:
    """Do blocks with rows of their own share this axis? Lanes are theirs: copies of a row for every
    lane of one number would be written one by one.
    """
    for mate in blocks(draft.nest, axis):
        if mate.op in (Ops.STORE, Ops.STAGE):
            row = _written_along(mate)
            if row is not None and row not in block.bound and row.size >= draft.lanes(mate):
                return True
    return False


def _is_plain(draft: Draft, block: UOp, axis: UOp, cuts: Mapping[UOp, int]) -> bool:
    """Does a block want only vectors along what it writes?"""
    if is_scanned(draft.nest, axis) or _read_across(draft, block, axis, cuts) is not None:
        return False
    return not (_is_written_out(draft, block, axis, 1) and _is_masked(block, axis))


def _cut(draft: Draft, block: UOp, axis: UOp, cuts: Mapping[UOp, int]) -> int:
    """How many elements along an axis at once, beside those of other axes."""
    sums = _collected(draft, axis)
    wide = 2 if sums else 1
    copies = prod(r.size if r.kind is AxisKind.UPCAST else cuts.get(r, 1) for r in block.bound)
    vectors = max(1, draft.vectors(block) * wide // copies)
    if any(draft.work_along(found, axis) >= HEAVIEST for found in sums):
        vectors = 1
    if draft.looked_up(block, axis):
        vectors = 1
    return _amount(draft, axis, _bounded(draft, axis, draft.lanes(block) * vectors))


def _bounded(draft: Draft, axis: UOp, amount: int) -> int:
    """So many elements at once, or fewer, if that would be too many instructions."""
    each = draft.per_step(axis)
    while amount > 1 and amount * each > MAX_UNROLLED:
        amount //= 2
    return amount


def _vectorize_writes(draft: Draft, block: UOp, axis: UOp) -> None:
    across = _read_across(draft, block, axis, {})
    if across is not None and draft.work(block) < HEAVIEST:
        _turn_around(draft, block, axis, across)
    elif is_scanned(draft.nest, axis):
        _vectorize_scan(draft, block, axis)
    elif _is_masked(block, axis) and _is_written_out(
        draft, block, axis, _steps_at_once(block, axis)
    ):
        _unroll_masked(draft, axis, draft.lanes(block))
    else:
        draft.attempt(Opt(OptOps.UPCAST, axis.axis, _cut(draft, block, axis, {})))


def _turn_around(draft: Draft, block: UOp, axis: UOp, across: UOp) -> None:
    """A transposition: whole vectors on both sides, and whole lines of the cache on one of them, if
    that is not too much to write out.

    Rows that lie a multiple of a cache's way apart have too few places in it: parts of their lines
    do not stay there until the rest is written, so whole ones are written, and others wait.
    """
    lanes = draft.lanes(block)
    is_alone = len(_places(draft)) == 1 and draft.is_light(block)
    is_turned = 2 * lanes <= draft.target.registers and across.size >= 4 * LINE * lanes
    line = LINE * lanes if is_alone and is_turned else lanes
    apart = (written_stride(block, across) or 0) * block.src[0].dtype.itemsize
    is_crowded = line > lanes and apart % (draft.target.l1_bytes // draft.target.l1_ways) == 0
    along, beside = (line, lanes) if is_crowded else (lanes, line)
    draft.attempt(Opt(OptOps.UPCAST, axis.axis, _amount(draft, axis, along)))
    draft.attempt(Opt(OptOps.UPCAST, across.axis, _amount(draft, across, beside)))
    if is_crowded:
        draft.attempt(Opt(OptOps.SWAP, across.axis, axis.axis))


def _unroll_masked(draft: Draft, axis: UOp, lanes: int) -> None:
    """Without a loop masks are constants, and most of them go away."""
    is_even = axis.size % lanes == 0
    amount = axis.size if is_even else _amount(draft, axis, lanes)
    if draft.attempt(Opt(OptOps.UPCAST, axis.axis, amount)) and not is_even:
        draft.attempt(Opt(OptOps.UPCAST, axis.axis, -(-axis.size // amount)))


def _is_masked(block: UOp, axis: UOp) -> bool:
    """Does it depend on this axis whether something is read?"""
    return any(axis in condition.ranges for condition in _conditions(block))


def _conditions(block: UOp) -> list[UOp]:
    """All that must hold for something to be read, as far as loops alone decide it."""
    gates = dict.fromkeys([node.gate for node in block.toposort() if node.op is Ops.INDEX])
    found = dict.fromkeys([c for gate in gates for c in conditions_of(gate)])
    return [condition for condition in found if not _is_looked_at(condition)]


def _is_looked_at(condition: UOp) -> bool:
    """Does it depend on what is in memory?"""
    return any(node.op is Ops.LOAD for node in condition.toposort())


def _is_written_out(draft: Draft, block: UOp, axis: UOp, steps: int) -> bool:
    """Is a padded row short enough to be written out? Each vector takes so many steps."""
    lanes = draft.lanes(block)
    few = MASKED * (4 if draft.is_light(block) else 2)
    most = max(MASKED, min(few, MOST_MASKED // steps))
    return lanes <= axis.size <= lanes * most


def _steps_at_once(block: UOp, axis: UOp) -> int:
    """Steps of reductions that are written out for each element along this axis."""
    reduces = [n for n in block.toposort() if n.op is Ops.REDUCE and axis in n.ranges]
    return max([prod(r.size for r in n.bound if r.kind.is_unrolled) for n in reduces], default=1)


def _vectorize_scan(draft: Draft, block: UOp, axis: UOp) -> None:
    """Whole vectors of steps, for which the axis may have to be made longer."""
    lanes = draft.lanes(block)
    amount = lanes * draft.vectors(block)
    while amount > 1 and amount // 2 >= axis.size:
        amount //= 2
    if axis.size % lanes:
        draft.attempt(Opt(OptOps.PADTO, axis.axis, amount))
    while amount > 1 and find_axis(draft.nest, axis.axis).size % amount:
        amount //= 2
    draft.attempt(Opt(OptOps.UPCAST, axis.axis, amount))


def _read_across(draft: Draft, block: UOp, axis: UOp, cuts: Container[UOp]) -> UOp | None:
    """Another axis of a block that reads run along, while they jump along the one it writes."""
    for index in draft.loads(block):
        if stride(index, axis) not in NEAR:
            for other in block.bound:
                is_whole = other.kind is AxisKind.LOOP and other not in cuts
                if is_whole and stride(index, other) == 1:
                    return other
    return None


def _written_along(block: UOp) -> UOp | None:
    """The axis along which neighbouring elements are written."""
    for axis in block.bound:
        if written_stride(block, axis) == 1:
            return axis
    return None


def _collected(draft: Draft, axis: UOp) -> list[UOp]:
    """Sums that are collected side by side along this axis: each step reads a run of memory."""
    collecting = draft.blocks(Ops.REDUCE) + draft.blocks(Ops.SCAN)
    return [block for block in collecting if axis in block.ranges]


def _vectorize_reduction(draft: Draft, block: UOp) -> set[int]:
    """Along the reduced axis if that is how memory lies; the axes around it are then taken.

    Else the place of the result has lanes, and a short reduction no loop.
    """
    inside = [r for r in block.bound if r.kind is AxisKind.REDUCE]
    axis = _own_axis(draft, block, inside)
    if axis is not None:
        number = next_number(draft.nest)
        mates = blocks(draft.nest, axis)
        around = {r.axis for mate in mates for r in mate.ranges}
        if not read_side_by_side(draft, block, axis):
            is_looked_up = any(_is_looked_up(draft, mate, axis) for mate in mates)
            vectors = max(1, draft.vectors(block) // rows_at_once(draft, block))
            vectors = 1 if is_looked_up else vectors
            amount = _amount(draft, axis, draft.lanes(block) * vectors)
            while amount > draft.lanes(block) and axis.size % amount:
                amount //= 2  # what is left over would be summed one by one
            draft.attempt(Opt(OptOps.UNROLL, axis.axis, amount))
        return around | set(range(number, next_number(draft.nest)))
    steps = 1
    for short in reversed(inside):
        steps *= short.size
        is_long = steps > SHORT or draft.work_along(block, short) >= HEAVIEST
        if is_long or _skips_rows(draft, block, short, steps // short.size):
            break
        draft.attempt(Opt(OptOps.UNROLL, short.axis, short.size))
    return set()


def _skips_rows(draft: Draft, block: UOp, axis: UOp, steps: int) -> bool:
    """Does a step of this axis read a row or nothing, for a whole row of results? It is then asked
    once, if that is a loop, and the text is shorter.
    """
    conditions = _conditions(block)
    rows = [
        place
        for written, place in _places(draft)
        if any(place in condition.ranges for condition in conditions)
        and _is_written_out(draft, written, place, steps)
    ]
    of_rows = [c for c in conditions if rows and c.ranges.isdisjoint(rows)]
    return any(axis in condition.ranges for condition in of_rows)


def _is_looked_up(draft: Draft, block: UOp, axis: UOp) -> bool:
    """Is there an index for every step? Each is looked at, and what it names is read, by itself."""
    return any(node.op is Ops.CHECK and axis in node.ranges for node in draft.own_nodes(block))


def _own_axis(draft: Draft, block: UOp, inside: list[UOp]) -> UOp | None:
    """The reduced axis along which everything that depends on it is read element by element."""
    loads = draft.loads(block)
    for axis in reversed(inside):
        along = [stride(index, axis) for index in loads if axis in index.ranges]
        if along and all(step == 1 for step in along):
            is_short = axis.size < 2 * draft.lanes(block)
            return None if is_short and _has_place(draft, block) else axis
    return None


def _has_place(draft: Draft, block: UOp) -> bool:
    """Could the place of a reduction's result have lanes instead?"""
    loads, lanes = draft.loads(block), draft.lanes(block)
    return any(
        place in block.ranges
        and place.size >= lanes
        and all(stride(index, place) in NEAR for index in loads)
        for _, place in _places(draft)
    )


def _places(draft: Draft) -> list[tuple[UOp, UOp]]:
    """Blocks that write, and the axes along which they write neighbouring elements."""
    found = [(block, _written_along(block)) for block in draft.blocks(Ops.STORE)]
    found += [(block, _written_along(block)) for block in draft.blocks(Ops.STAGE)]
    return [(block, axis) for block, axis in found if axis is not None]


def _amount(draft: Draft, axis: UOp, most: int) -> int:
    """The largest power of two that fits; one that divides where nothing may be done twice."""
    amount = most
    is_free = may_repeat(draft.nest, axis)
    while amount > 1 and (amount > axis.size or (not is_free and axis.size % amount)):
        amount //= 2
    return amount


# ---------------------------------------------------------------------- cores and threads


def _use_cores(draft: Draft) -> None:
    """The outermost loop with work for every core is divided, if there is enough work in all."""
    target = draft.target
    if target.cores < 2 or draft.steps() * STEP_NS < target.core_work_ns:
        return
    loops = [r for r in draft.nest.outer if r.kind is AxisKind.LOOP]
    loops = [r for r in loops if not is_scanned(draft.nest, r)]
    wide = [r for r in loops if r.size >= 4 * target.cores] or [r for r in loops if r.size > 1]
    if wide:
        draft.attempt(Opt(OptOps.CORE, wide[0].axis))


def _use_threads(draft: Draft) -> None:
    """Vectors of four in each thread, and as many threads in a group as divide the axis."""
    for block in draft.blocks(Ops.REDUCE):
        outer = prod(r.size for r in axes(draft.nest) if r.kind is AxisKind.GLOBAL)
        inside = block.bound[-1]
        if outer < FEW_GROUPS and inside.size % SHARING == 0 and inside.size >= LONG:
            draft.attempt(Opt(OptOps.GROUPTOP, inside.axis, SHARING))
    for block in draft.blocks(Ops.STORE):
        axis = _written_along(block)
        if axis is None or axis.kind is not AxisKind.GLOBAL:
            continue
        if axis.size % THREAD_ELEMENTS == 0:
            if all(stride(index, axis) in (0, 1) for index in draft.loads(block)):
                draft.attempt(Opt(OptOps.UPCAST, axis.axis, THREAD_ELEMENTS))
    found = [r for r in axes(draft.nest) if r.kind is AxisKind.GLOBAL]
    for axis in reversed(found):
        amount = MOST_THREADS
        while amount > 1 and axis.size % amount:
            amount //= 2
        if amount > 1:
            draft.attempt(Opt(OptOps.LOCAL, axis.axis, min(amount, draft.target.group_size)))
            return
