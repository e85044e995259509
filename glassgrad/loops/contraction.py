"""Recipes for contractions: a register tile of the result, one operand packed for the cache.

A contraction is a sum of products in which each operand lacks an axis of the result that the
other has. Every element is used many times, so it pays to keep a tile of sums in registers and to
copy what the inner loops read into the order in which they read it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.strides import stride, written_stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.dots import dot_recipe
from glassgrad.loops.draft import Draft
from glassgrad.loops.opts import Opt, OptOps

FEW_COLUMNS = 4  # half a vector; with fewer, lanes along the sum are better
MOST_LANES = 8  # with fewer columns, a sum may lie better in memory
SHORT = 4  # a loop of so few steps is written out
SKINNY = 32  # rows: packing an operand for so few takes longer than it saves
ENOUGH_REUSE = 4  # times that a packed element should be read


@dataclass(frozen=True)
class Contraction:
    """rows: the result's axis that only `left` has; columns: the unit-stride axis of `right`."""

    reduce: UOp
    rows: UOp
    columns: UOp
    left: UOp
    right: UOp

    @property
    def depth(self) -> int:
        return prod(r.size for r in self.reduce.bound)


def contraction_recipe(draft: Draft) -> bool:
    """Shape a contraction; False, and nothing done, if the nest is none."""
    found = _find(draft)
    columns = 0 if found is None else found.columns.size
    if found is not None and _is_skinny(found):
        columns = 0  # a row of the result reads all of `right`: as it lies, not packed
    if columns < MOST_LANES and dot_recipe(draft, columns):
        _divide(draft, [r.axis for r in draft.nest.outer])
        return True
    if found is None:
        return False
    lanes = min(draft.lanes(found.reduce), 1 << (found.columns.size.bit_length() - 1))
    rows, vectors = _tile(draft, found, lanes)
    if not draft.attempt(Opt(OptOps.UPCAST, found.columns.axis, vectors * lanes)):
        return False
    if rows > 1:
        draft.attempt(Opt(OptOps.UPCAST, found.rows.axis, rows))
    if _overlaps(found):
        _block_windows(draft, found)
    else:
        _block(draft, found, vectors * lanes)
    return True


def _is_skinny(found: Contraction) -> bool:
    return found.rows.size <= SKINNY and stride(found.right, found.columns) != 1


def _overlaps(found: Contraction) -> bool:
    """Do steps of the sum and places of the result share an index, so that reads overlap?"""
    reduced = set(found.reduce.bound)
    return any(
        not reduced.isdisjoint(index.ranges) and not index.ranges <= reduced
        for index in found.right.indices
    )


def _block_windows(draft: Draft, found: Contraction) -> None:
    """Rows and columns innermost; around them a window of `right`, copied once for all rows."""
    loops = [r for r in draft.nest.outer if r.kind is AxisKind.LOOP]
    inside = {found.rows.axis, found.columns.axis}
    around = [r for r in loops if r.axis not in inside]
    if not around:
        _divide(draft, [r.axis for r in loops])
        return
    wanted = [*around, *sorted((r for r in loops if r.axis in inside), key=_is_columns(found))]
    for place, axis in enumerate(wanted):
        now = [r.axis for r in draft.nest.outer if r.kind is AxisKind.LOOP]
        if now[place] != axis.axis:
            draft.attempt(Opt(OptOps.SWAP, now[place], axis.axis))
    _divide(draft, [r.axis for r in wanted])
    if found.rows.size >= ENOUGH_REUSE:
        draft.attempt(Opt(OptOps.WINDOW, around[-1].axis, found.right.src[0].arg.slot))
    size = prod(r.size for r in found.left.ranges) * found.reduce.dtype.itemsize
    place = around[0].axis if size <= draft.target.l2_bytes else found.rows.axis
    draft.attempt(Opt(OptOps.STAGE, place, found.left.src[0].arg.slot))
    last = found.reduce.bound[-1]
    if last.size <= SHORT:
        draft.attempt(Opt(OptOps.UNROLL, last.axis, last.size))
    _copy_in_vectors(draft)


def _copy_in_vectors(draft: Draft) -> None:
    """Scratch is filled along memory, a vector at a time."""
    for number in range(len(draft.blocks(Ops.STAGE))):
        block = draft.blocks(Ops.STAGE)[number]
        for axis in block.bound:
            if axis.kind is AxisKind.LOOP and written_stride(block, axis) == 1:
                amount = min(draft.lanes(block), 1 << (axis.size.bit_length() - 1))
                draft.attempt(Opt(OptOps.UPCAST, axis.axis, amount))
                break


def _is_columns(found: Contraction) -> Callable[[UOp], bool]:
    return lambda r: r.axis == found.columns.axis


def _find(draft: Draft) -> Contraction | None:
    reduces, stores = draft.blocks(Ops.REDUCE), draft.blocks(Ops.STORE)
    if len(reduces) != 1 or not stores:
        return None
    (reduce,) = reduces
    loads = draft.loads(reduce)
    if reduce.arg is not Ops.ADD or len(loads) != 2:
        return None
    outer = [r for r in draft.nest.outer if r.kind is AxisKind.LOOP]
    columns = [r for r in outer if all(stride(s.src[0], r) == 1 for s in stores)]
    for left, right in (loads, loads[::-1]):
        lane = [r for r in columns if r in right.ranges and r not in left.ranges]
        rows = [r for r in outer if r in left.ranges and r not in right.ranges]
        if lane and rows and lane[0].size >= FEW_COLUMNS:
            return Contraction(reduce, max(rows, key=lambda r: r.size), lane[0], left, right)
    return None


def _tile(draft: Draft, found: Contraction, lanes: int) -> tuple[int, int]:
    """Rows and vectors of the register tile: little waste at the edges, few loads per product."""
    best: tuple[float, int, int] | None = None
    for vectors in (1, 2, 3):
        for rows in range(1, 9):
            width = vectors * lanes
            if rows * vectors + vectors + 1 > draft.target.registers:
                continue
            if not _fits(draft, found.rows, rows) or not _fits(draft, found.columns, width):
                continue
            done = -(-found.rows.size // rows) * rows * -(-found.columns.size // width) * width
            waste = done / (found.rows.size * found.columns.size)
            cost = waste * (1 + 0.3 * (rows + vectors) / (rows * vectors) + 0.8 / rows)
            cost *= 1 if vectors * rows >= 8 else 8 / (vectors * rows)
            best = min(best or (cost, rows, vectors), (cost, rows, vectors))
    return (best[1], best[2]) if best is not None else (1, 1)


def _fits(draft: Draft, axis: UOp, amount: int) -> bool:
    """Can the axis be cut so, without storing an element twice where that would be wrong?"""
    return amount <= axis.size and not (draft.nest.rewrites and axis.size % amount)


def _block(draft: Draft, found: Contraction, width: int) -> None:
    """Blocks of columns whose panels fit the cache; rows inside; then the columns of a block."""
    target, size = draft.target, found.reduce.dtype.itemsize
    outer = {r.axis: r for r in draft.nest.outer}
    columns, rows = outer.get(found.columns.axis), outer.get(found.rows.axis)
    others = [axis for axis in outer if axis not in (found.columns.axis, found.rows.axis)]
    if columns is None or rows is None or columns.kind is not AxisKind.LOOP:
        _divide(draft, list(outer))
        return
    packs_left = any(stride(found.left, r) not in (0, 1) for r in found.reduce.bound)
    room = target.l2_bytes * 4 if packs_left else target.l2_bytes // 2
    panels = max(1, room // (found.depth * width * size))
    panels = min(panels, -(-columns.size // max(2, target.cores)))
    panels = _even(columns.size, panels, draft.nest.rewrites)
    if 1 < panels < columns.size:
        draft.attempt(Opt(OptOps.TILE, columns.axis, panels))
    draft.attempt(Opt(OptOps.SWAP, rows.axis, columns.axis))
    _divide(draft, [*others, columns.axis, rows.axis])
    if rows.size >= ENOUGH_REUSE:
        draft.attempt(Opt(OptOps.STAGE, columns.axis, found.right.src[0].arg.slot))
    if packs_left:
        draft.attempt(Opt(OptOps.STAGE, rows.axis, found.left.src[0].arg.slot))


def _even(size: int, most: int, must_divide: bool) -> int:
    """How many of an axis to take at a time: blocks of one size, if nearly as large as allowed."""
    dividing = max(n for n in range(1, most + 1) if size % n == 0)
    return dividing if must_divide or 4 * dividing >= 3 * most else most


def _divide(draft: Draft, preferred: list[int]) -> None:
    """Cores take whole blocks of the first of these axes that has enough of them.

    Other axes come before columns, and columns before rows, so that no panel is packed twice.
    """
    target = draft.target
    if target.cores < 2 or draft.steps() * 0.03 < target.core_work_ns:
        return
    loops = {r.axis: r for r in draft.nest.outer if r.kind is AxisKind.LOOP}
    for number in preferred:
        size = loops[number].size if number in loops else 1
        if size > 1 and (size % target.cores == 0 or size >= 4 * target.cores):
            draft.attempt(Opt(OptOps.CORE, number))
            return
