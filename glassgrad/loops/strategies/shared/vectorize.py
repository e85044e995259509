"""Vectorize a nest: lanes along unit-stride axes, several vectors at a time."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from math import prod

from glassgrad.ir.divmod import conjuncts
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.strides import stride, written_stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.moves.lanes import LANE_STRIDES
from glassgrad.loops.nest import (
    binders_over,
    find_axis,
    is_idempotent,
    is_scanned,
    next_axis_number,
)
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.shared.multi_stream import (
    VECTORS_PER_STEP,
    read_in_streams,
    unrolled_rows,
)
from glassgrad.loops.strategies.shared.recipe_builder import (
    COMPUTE_BOUND_WORK,
    MAX_UNROLLED_INSTRUCTIONS,
    RecipeBuilder,
    write_axis,
)

MAX_UNROLLED_STEPS = 16  # reduction steps that are fully unrolled
# vectors of a padded row that is always fully unrolled; up to four times as many if they are cheap
MAX_MASKED_VECTORS = 8
MAX_MASKED_STEPS = 96  # vectors times unrolled reduction steps, for these longer rows
MAX_REVERSED = 2  # size of an axis that is read in both directions and fully unrolled


def vectorize(builder: RecipeBuilder, reduced: set[int]) -> None:
    """Vectorize every binder along its unit-stride axis, except reductions over the axes in
    `reduced`.
    """
    taken: set[int] = set()  # axes of binders around vectorized reductions
    while (binder := _next_reduction(builder, reduced)) is not None:
        reduced |= {r.axis for r in binder.bound}
        taken |= _vectorize_reduction(builder, binder)
    builder.try_each([Opt(OptOps.UPCAST, axis.axis, axis.size) for axis in _reversed_axes(builder)])
    for op in (Ops.STORE, Ops.STAGE):
        while _vectorize_writers(builder, op, taken):
            pass


def _vectorize_writers(builder: RecipeBuilder, op: Ops, taken: set[int]) -> bool:
    """Vectorize binders along the axis they write, up to the first that needs more than UPCAST.

    False if none is left.
    """
    unrolled: dict[UOp, int] = {}
    other: tuple[UOp, UOp] | None = None
    for binder, axis in _unvectorized_writers(builder, op, taken):
        if axis in unrolled:
            continue
        if not _is_simple_write(builder, binder, axis, unrolled):
            other = binder, axis
            break
        unrolled[axis] = _write_amount(builder, binder, axis, unrolled)
    moves = [Opt(OptOps.UPCAST, r.axis, amount) for r, amount in unrolled.items() if amount > 1]
    builder.try_each(moves)
    taken |= {axis.axis for axis in unrolled}
    if other is not None and not unrolled:
        taken.add(other[1].axis)
        _vectorize_write(builder, *other)
    return bool(unrolled) or other is not None


def _next_reduction(builder: RecipeBuilder, done: set[int]) -> UOp | None:
    """The next reduction that is not vectorized yet."""
    blocks = builder.binders(Ops.REDUCE)
    return next((b for b in blocks if done.isdisjoint(r.axis for r in b.bound)), None)


def _reversed_axes(builder: RecipeBuilder) -> list[UOp]:
    """Short axes that are read in both directions: all their steps need the same elements."""
    found: dict[UOp, None] = {}
    for binder in builder.binders(Ops.STORE) + builder.binders(Ops.STAGE):
        short = [r for r in binder.bound if r.kind is AxisKind.LOOP and r.size <= MAX_REVERSED]
        loads = builder.loads(binder) if short else []
        for axis in short:
            along = {stride(index, axis) for index in loads}
            if any(step and -step in along for step in along):
                found[axis] = None
    return list(found)


def _unvectorized_writers(
    builder: RecipeBuilder, op: Ops, done: set[int]
) -> Iterator[tuple[UOp, UOp]]:
    """Binders with this op and the axes they write along, without those done."""
    for binder in builder.binders(op):
        axis = write_axis(binder)
        if axis is not None and axis.kind is AxisKind.LOOP and axis.axis not in done:
            if not _has_longer_rows(builder, binder, axis):
                yield binder, axis


def _has_longer_rows(builder: RecipeBuilder, binder: UOp, axis: UOp) -> bool:
    """True if a binder over this axis writes longer rows inside: lanes belong to these rows."""
    for other in binders_over(builder.nest, axis):
        if other.op in (Ops.STORE, Ops.STAGE):
            row = write_axis(other)
            if row is not None and row not in binder.bound and row.size >= builder.lanes(other):
                return True
    return False


def _is_simple_write(
    builder: RecipeBuilder, binder: UOp, axis: UOp, unrolled: Mapping[UOp, int]
) -> bool:
    """True if a binder needs only vectors along the axis it writes."""
    if is_scanned(builder.nest, axis) or _read_across(builder, binder, axis, unrolled) is not None:
        return False
    return not (_is_fully_unrolled(builder, binder, axis, 1) and _is_masked(binder, axis))


def _write_amount(
    builder: RecipeBuilder, binder: UOp, axis: UOp, unrolled: Mapping[UOp, int]
) -> int:
    """How many elements along an axis to unroll; `unrolled` has those of other axes."""
    sums = _sums_along(builder, axis)
    wide = 2 if sums else 1
    copies = prod(r.size if r.kind is AxisKind.UPCAST else unrolled.get(r, 1) for r in binder.bound)
    vectors = max(1, builder.vectors(binder) * wide // copies)
    if any(builder.work_along(found, axis) >= COMPUTE_BOUND_WORK for found in sums):
        vectors = 1
    if builder.indirect_loads(binder, axis):
        vectors = 1
    return _largest_amount(
        builder, axis, _bound_code_size(builder, axis, builder.lanes(binder) * vectors)
    )


def _bound_code_size(builder: RecipeBuilder, axis: UOp, amount: int) -> int:
    """The amount, halved until the unrolled code is short enough."""
    each = builder.instructions_per_step(axis)
    while amount > 1 and amount * each > MAX_UNROLLED_INSTRUCTIONS:
        amount //= 2
    return amount


def _vectorize_write(builder: RecipeBuilder, binder: UOp, axis: UOp) -> None:
    across = _read_across(builder, binder, axis, {})
    if across is not None and builder.work(binder) < COMPUTE_BOUND_WORK:
        _transpose(builder, binder, axis, across)
    elif is_scanned(builder.nest, axis):
        _vectorize_scan(builder, binder, axis)
    elif _is_masked(binder, axis) and _is_fully_unrolled(
        builder, binder, axis, _unrolled_steps(binder, axis)
    ):
        _unroll_masked(builder, axis, builder.lanes(binder))
    else:
        builder.try_move(Opt(OptOps.UPCAST, axis.axis, _write_amount(builder, binder, axis, {})))


def _transpose(builder: RecipeBuilder, binder: UOp, axis: UOp, across: UOp) -> None:
    """Whole vectors on both sides of a transposition, and whole cache lines on one of them if that
    is not too much code.

    Rows whose distance is a multiple of the L1 way size share few sets: partial lines are evicted
    before they are complete, so whole lines are written and reads wait.
    """
    lanes = builder.lanes(binder)
    is_only_write = len(_writers(builder)) == 1 and builder.is_memory_bound(binder)
    has_registers = (
        2 * lanes <= builder.target.registers and across.size >= 4 * VECTORS_PER_STEP * lanes
    )
    line_elements = VECTORS_PER_STEP * lanes if is_only_write and has_registers else lanes
    row_distance = (written_stride(binder, across) or 0) * binder.src[0].dtype.itemsize
    has_set_conflicts = (
        line_elements > lanes
        and row_distance % (builder.target.l1_bytes // builder.target.l1_ways) == 0
    )
    along_amount, across_amount = (
        (line_elements, lanes) if has_set_conflicts else (lanes, line_elements)
    )
    builder.try_move(Opt(OptOps.UPCAST, axis.axis, _largest_amount(builder, axis, along_amount)))
    builder.try_move(
        Opt(OptOps.UPCAST, across.axis, _largest_amount(builder, across, across_amount))
    )
    if has_set_conflicts:
        builder.try_move(Opt(OptOps.SWAP, across.axis, axis.axis))


def _unroll_masked(builder: RecipeBuilder, axis: UOp, lanes: int) -> None:
    """Unroll fully, so that masks become constants and mostly vanish."""
    is_even = axis.size % lanes == 0
    amount = axis.size if is_even else _largest_amount(builder, axis, lanes)
    if builder.try_move(Opt(OptOps.UPCAST, axis.axis, amount)) and not is_even:
        builder.try_move(Opt(OptOps.UPCAST, axis.axis, -(-axis.size // amount)))


def _is_masked(binder: UOp, axis: UOp) -> bool:
    """True if some load under this axis is conditional."""
    return any(axis in condition.ranges for condition in _conditions(binder))


def _conditions(binder: UOp) -> list[UOp]:
    """The gates of all loads, as far as they depend on loops alone."""
    gates = dict.fromkeys([node.gate for node in binder.toposort() if node.op is Ops.INDEX])
    found = dict.fromkeys([c for gate in gates for c in conjuncts(gate)])
    return [condition for condition in found if not _depends_on_data(condition)]


def _depends_on_data(condition: UOp) -> bool:
    """True if the condition reads memory."""
    return any(node.op is Ops.LOAD for node in condition.toposort())


def _is_fully_unrolled(builder: RecipeBuilder, binder: UOp, axis: UOp, steps: int) -> bool:
    """True if a padded row is short enough to unroll fully; each vector takes `steps` steps."""
    lanes = builder.lanes(binder)
    cheap = MAX_MASKED_VECTORS * (4 if builder.is_memory_bound(binder) else 2)
    limit = max(MAX_MASKED_VECTORS, min(cheap, MAX_MASKED_STEPS // steps))
    return lanes <= axis.size <= lanes * limit


def _unrolled_steps(binder: UOp, axis: UOp) -> int:
    """The unrolled reduction steps per element along this axis."""
    reduces = [n for n in binder.toposort() if n.op is Ops.REDUCE and axis in n.ranges]
    return max([prod(r.size for r in n.bound if r.kind.is_unrolled) for n in reduces], default=1)


def _vectorize_scan(builder: RecipeBuilder, binder: UOp, axis: UOp) -> None:
    """Unroll whole vectors of scan steps, padding the axis if needed."""
    lanes = builder.lanes(binder)
    amount = lanes * builder.vectors(binder)
    while amount > 1 and amount // 2 >= axis.size:
        amount //= 2
    if axis.size % lanes:
        builder.try_move(Opt(OptOps.PADTO, axis.axis, amount))
    while amount > 1 and find_axis(builder.nest, axis.axis).size % amount:
        amount //= 2
    builder.try_move(Opt(OptOps.UPCAST, axis.axis, amount))


def _read_across(
    builder: RecipeBuilder, binder: UOp, axis: UOp, unrolled: Container[UOp]
) -> UOp | None:
    """Another axis that reads are contiguous along, where they are strided along the written
    axis.
    """
    for index in builder.loads(binder):
        if stride(index, axis) not in LANE_STRIDES:
            for other in binder.bound:
                is_free_loop = other.kind is AxisKind.LOOP and other not in unrolled
                if is_free_loop and stride(index, other) == 1:
                    return other
    return None


def _sums_along(builder: RecipeBuilder, axis: UOp) -> list[UOp]:
    """Reductions and scans with one result per element of this axis."""
    binders = builder.binders(Ops.REDUCE) + builder.binders(Ops.SCAN)
    return [binder for binder in binders if axis in binder.ranges]


def _vectorize_reduction(builder: RecipeBuilder, binder: UOp) -> set[int]:
    """Vectorize a reduction along its contiguous axis; returns the axes around it, which are then
    taken.

    Otherwise its result gets lanes, and a short reduction is fully unrolled.
    """
    inside = [r for r in binder.bound if r.kind is AxisKind.REDUCE]
    axis = _contiguous_axis(builder, binder, inside)
    if axis is not None:
        number = next_axis_number(builder.nest)
        members = binders_over(builder.nest, axis)
        enclosing = {r.axis for member in members for r in member.ranges}
        if not read_in_streams(builder, binder, axis):
            is_looked_up = any(_has_checked_index(builder, member, axis) for member in members)
            vectors = max(1, builder.vectors(binder) // unrolled_rows(builder, binder))
            vectors = 1 if is_looked_up else vectors
            amount = _largest_amount(builder, axis, builder.lanes(binder) * vectors)
            while amount > builder.lanes(binder) and axis.size % amount:
                amount //= 2  # a remainder would be summed element by element
            builder.try_move(Opt(OptOps.UNROLL, axis.axis, amount))
        return enclosing | set(range(number, next_axis_number(builder.nest)))
    steps = 1
    for short in reversed(inside):
        steps *= short.size
        is_long = (
            steps > MAX_UNROLLED_STEPS or builder.work_along(binder, short) >= COMPUTE_BOUND_WORK
        )
        if is_long or _masks_whole_rows(builder, binder, short, steps // short.size):
            break
        builder.try_move(Opt(OptOps.UNROLL, short.axis, short.size))
    return set()


def _masks_whole_rows(builder: RecipeBuilder, binder: UOp, axis: UOp, steps: int) -> bool:
    """True if a step of this axis loads a whole row of results or nothing: as a loop, the mask is
    evaluated once.
    """
    conditions = _conditions(binder)
    rows = [
        row
        for written, row in _writers(builder)
        if any(row in condition.ranges for condition in conditions)
        and _is_fully_unrolled(builder, written, row, steps)
    ]
    row_conditions = [c for c in conditions if rows and c.ranges.isdisjoint(rows)]
    return any(axis in condition.ranges for condition in row_conditions)


def _has_checked_index(builder: RecipeBuilder, binder: UOp, axis: UOp) -> bool:
    """True if every step checks an index of its own, and so loads element by element."""
    return any(node.op is Ops.CHECK and axis in node.ranges for node in builder.own_nodes(binder))


def _contiguous_axis(builder: RecipeBuilder, binder: UOp, inside: list[UOp]) -> UOp | None:
    """The reduced axis along which every dependent load is contiguous."""
    loads = builder.loads(binder)
    for axis in reversed(inside):
        along = [stride(index, axis) for index in loads if axis in index.ranges]
        if along and all(step == 1 for step in along):
            is_short = axis.size < 2 * builder.lanes(binder)
            return None if is_short and _has_result_lanes(builder, binder) else axis
    return None


def _has_result_lanes(builder: RecipeBuilder, binder: UOp) -> bool:
    """True if the result of a reduction could have lanes instead."""
    loads, lanes = builder.loads(binder), builder.lanes(binder)
    return any(
        row in binder.ranges
        and row.size >= lanes
        and all(stride(index, row) in LANE_STRIDES for index in loads)
        for _, row in _writers(builder)
    )


def _writers(builder: RecipeBuilder) -> list[tuple[UOp, UOp]]:
    """STOREs and STAGEs with the axes they write along."""
    found = [(binder, write_axis(binder)) for binder in builder.binders(Ops.STORE)]
    found += [(binder, write_axis(binder)) for binder in builder.binders(Ops.STAGE)]
    return [(binder, axis) for binder, axis in found if axis is not None]


def _largest_amount(builder: RecipeBuilder, axis: UOp, limit: int) -> int:
    """The largest power of two up to `limit` that fits the axis; a divisor if steps must not
    repeat.
    """
    amount = limit
    may_overlap = is_idempotent(builder.nest, axis)
    while amount > 1 and (amount > axis.size or (not may_overlap and axis.size % amount)):
        amount //= 2
    return amount
