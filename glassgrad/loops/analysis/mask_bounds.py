"""Mask bounds: loops over masked elements start and end where the mask does.

In where(j <= i, x[i, j], -inf), row i sees no element from j = i + 1 on. A maximum ignores them,
exp makes them 0 and a sum ignores those, so every loop over j may end there. In the transposed
matrix, loops may start late. This module finds such loops, and the bounds that hold for all rows of
a block.

Masked products count as 0, and what is added to -inf as finite, as in any attention that skips
masked blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import inf
from typing import NamedTuple

from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.divmod import floordiv
from glassgrad.ir.facts import identity
from glassgrad.ir.linear import ZERO, add, linear, maximum, minimum, scale, sub
from glassgrad.ir.ops import Ops
from glassgrad.ir.reindex import reindex
from glassgrad.ir.staged import carried_loops
from glassgrad.ir.stages import MaskBound, Nest
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.loops.nest import axes, substitute_axis
from glassgrad.loops.opts import Opt, OptOps

SPLITTING_MOVES = frozenset((OptOps.UPCAST, OptOps.UNROLL, OptOps.TILE))
BOUNDS_KEEPING_MOVES = SPLITTING_MOVES | {
    OptOps.SWAP,
    OptOps.PACK,
    OptOps.CACHE_READ,
    OptOps.CORE,
    OptOps.LANES,
}
# Elements. Loops end at multiples of this, so that all loops agree on how far scratch is filled.
MASK_ALIGNMENT = 64
Value = float | bool | None
INDEX_ARITHMETIC: dict[Ops, Callable[[UOp, UOp], UOp]] = {Ops.ADD: add, Ops.SUB: sub}


class MaskSide(NamedTuple):
    """Elements at least `distance` beyond the row (`toward` = 1) or before it (-1)."""

    row: UOp
    toward: int
    distance: int


def masked_loops(
    body: UOp, row: UOp, toward: int, alignment: int = MASK_ALIGNMENT
) -> tuple[set[UOp], int]:
    """The loops that the mask hides on one side of the row, and from which distance on.

    Only loops whose size is a multiple of `alignment`.
    """
    nodes = body.toposort()
    for distance in sorted({d for node in nodes for d in _distances(node, row, toward)}):
        loops = _masked_loops_on(nodes, MaskSide(row, toward, distance))
        found = {r for r in loops if r.src[0].is_const and r.size % alignment == 0}
        if found:
            return found, distance
    return set(), 0


def _distances(node: UOp, row: UOp, toward: int) -> list[int]:
    """The distances at which a comparison of an element's index with the row flips."""
    if node.op is not Ops.CMPLT:
        return []
    found = _difference(node, row)
    if found is None:
        return []
    _, sign, offset = found
    return [-offset if sign == toward else offset + 1]


def _difference(node: UOp, row: UOp) -> tuple[UOp, int, int] | None:
    """left - right as (range, sign, offset), if it is sign·(range - row) + offset"""
    left, right = [_as_index(source) for source in node.src]
    if left is None or right is None:
        return None
    terms, offset = linear(sub(left, right))
    others = [atom for atom in terms if atom is not row]
    if len(terms) != 2 or len(others) != 1 or others[0].op is not Ops.RANGE:
        return None
    sign = terms[others[0]]
    return (others[0], sign, offset) if abs(sign) == 1 and terms[row] == -sign else None


def _as_index(node: UOp) -> UOp | None:
    """An integer expression over ranges as an index."""
    if node.dtype.kind == "index":
        return node
    if node.op is Ops.CONST and isinstance(node.arg, int):
        return const(node.arg)
    if node.op is Ops.CAST and node.src[0].dtype.kind == "index":
        return node.src[0]
    if node.op in INDEX_ARITHMETIC:
        left, right = [_as_index(source) for source in node.src]
        return None if left is None or right is None else INDEX_ARITHMETIC[node.op](left, right)
    return None


def _masked_loops_on(nodes: list[UOp], side: MaskSide) -> set[UOp]:
    """Loops without effect on this side: readers are visited before the scratch they read."""
    found: set[UOp] = set()
    used: set[UOp] = set()
    for node in reversed(nodes):
        if node.op is Ops.REDUCE:
            neutral = identity(node.arg, node.dtype)
            for r in node.bound:
                is_masked = masked_value(node.src[0], r, side) == neutral
                (found if is_masked else used).add(r)
        elif node.op is Ops.STORE:
            used.update(node.bound)
        elif node.op is Ops.STAGE and carried_loops(node):
            for r in node.bound:  # carried scratch keeps its value where nothing is added
                is_masked = (
                    masked_value(node.src[0].src[0], r, side) == 0 and node.src[0].arg is Ops.ADD
                )
                (found if is_masked else used).add(r)
        elif node.op is Ops.STAGE:
            indices = [index for index in nodes if index.op is Ops.INDEX and index.src[0] is node]
            for number, written in enumerate(node.scratch_indices):
                read = [index.indices[number] for index in indices]
                is_masked = written.op is Ops.RANGE and all(r in found - used for r in read)
                (found if is_masked else used).update({written} & set(node.bound))
    return found - used


def masked_value(node: UOp, axis: UOp, side: MaskSide) -> Value:
    """The constant value of an expression on the masked side of a range; None if it is not
    constant.
    """
    if node.op is Ops.CONST:
        value = node.arg
        return value if isinstance(value, bool) else float(value)
    if node.op in (Ops.CMPLT, Ops.CMPEQ) and node.src[0].dtype.kind != "float":
        return _compare(node, axis, side)
    if node.op is Ops.WHERE:
        condition = masked_value(node.src[0], axis, side)
        return (
            None if condition is None else masked_value(node.src[1 if condition else 2], axis, side)
        )
    if node.op is Ops.LOAD and node.buffer.op in (Ops.STAGE, Ops.STORE):
        return _stored_value(node.src[0], axis, side)
    if node.op is Ops.CAST and node.dtype.kind == "float":
        return masked_value(node.src[0], axis, side)
    if node.op is Ops.REDUCE:
        value = masked_value(node.src[0], axis, side)
        return value if value == identity(node.arg, node.dtype) else None
    if node.op in VALUE_RULES:
        return VALUE_RULES[node.op](*[masked_value(source, axis, side) for source in node.src])
    return None


def _compare(node: UOp, axis: UOp, side: MaskSide) -> bool | None:
    difference = _difference(node, side.row)
    if difference is None or difference[0] is not axis:
        return None
    _, sign, offset = difference
    smallest = side.distance + sign * side.toward * offset  # of distance plus offset
    if node.op is Ops.CMPEQ:
        return False if smallest > 0 else None
    if sign == side.toward:
        return False if smallest >= 0 else None
    return True if smallest > 0 else None


def _stored_value(index: UOp, axis: UOp, side: MaskSide) -> Value:
    """The constant that this kernel wrote to the masked elements."""
    binder = index.src[0]
    indices = binder.src[0].indices if binder.op is Ops.STORE else binder.scratch_indices
    for written, read in zip(indices, index.indices, strict=True):
        if read is axis and written.op is Ops.RANGE:
            return masked_value(binder.value, written, side)
    return None


# ---------------------------------------------------------------------- arithmetic with unknowns


def _add(left: Value, right: Value) -> Value:
    if left == -inf or right == -inf:
        return -inf
    return None if left is None or right is None else left + right


def _sub(left: Value, right: Value) -> Value:
    if left == -inf:
        return -inf
    return None if left is None or right is None else left - right


def _mul(left: Value, right: Value) -> Value:
    if left == 0 or right == 0:
        return 0.0
    return None if left is None or right is None else left * right


def _and(left: Value, right: Value) -> Value:
    if left is False or right is False:
        return False
    return True if left is True and right is True else None


def _or(left: Value, right: Value) -> Value:
    if left is True or right is True:
        return True
    return False if left is False and right is False else None


def _differ(left: Value, right: Value) -> Value:
    return None if left is None or right is None else left != right


VALUE_RULES: dict[Ops, Callable[..., Value]] = {
    Ops.ADD: _add,
    Ops.SUB: _sub,
    Ops.MUL: _mul,
    Ops.FDIV: lambda left, right: 0.0 if left == 0 else None,
    Ops.EXP2: lambda value: 0.0 if value == -inf else None,
    Ops.AND: _and,
    Ops.OR: _or,
    Ops.CMPNE: _differ,
}


# ---------------------------------------------------------------------- shorter loops


def mask_bounds_of(body: UOp, row: UOp, start: UOp, rows: int) -> tuple[MaskBound, ...]:
    """The bounds of masked loops for a block of `rows` rows from `start` on."""
    before, before_distance = masked_loops(body, row, -1, alignment=1)
    beyond, after_distance = masked_loops(body, row, 1)
    begin, end = (
        maximum(add(start, 1 - before_distance), ZERO),
        add(start, rows - 1 + after_distance),
    )
    return tuple(
        [
            MaskBound(r.axis, begin if r in before else ZERO, end if r in beyond else None)
            for r in sorted(before | beyond, key=lambda r: r.axis)
        ]
    )


def strip_mine_mask_bounds(
    mask_bounds: tuple[MaskBound, ...], loops: Collection[UOp], blocks: UOp, amount: int
) -> tuple[MaskBound, ...]:
    """The bounds after these loops are strip-mined: of the loop over blocks and of those inside.

    Empty unless all loops begin and end alike.
    """
    numbers = {r.axis for r in loops}
    bounds = {(n.begin, n.end) for n in mask_bounds if n.axis in numbers}
    others = [n for n in mask_bounds if n.axis not in numbers]
    if len(bounds) != 1 or others or len(mask_bounds) < len(numbers) or amount % MASK_ALIGNMENT:
        return ()
    ((begin, end),) = bounds
    start = scale(blocks, amount)
    first = begin if begin is ZERO else maximum(sub(begin, start), ZERO)
    last = None if end is None else sub(end, start)
    inside = [MaskBound(n.axis, first, last) for n in mask_bounds]
    return (MaskBound(blocks.axis, begin, end, amount), *inside)


def update_mask_bounds(
    mask_bounds: tuple[MaskBound, ...], opt: Opt, nest: Nest
) -> tuple[MaskBound, ...]:
    """The mask bounds after a move; a step of a split loop covers several elements.

    Empty if the move invalidates the loops they refer to.
    """
    current = {r.axis: r for r in axes(nest)}
    used = {
        r for n in mask_bounds for end in (n.begin, n.end) if end is not None for r in end.ranges
    }
    replacements = {r: found for r in used if (found := _replacement(r, opt, current)) is not None}
    if len(replacements) < len(used):
        return ()
    changed_axes = {opt.axis, opt.arg} if opt.op is OptOps.COALESCE else {opt.axis}
    if opt.op not in BOUNDS_KEEPING_MOVES and not changed_axes.isdisjoint(
        [n.axis for n in mask_bounds]
    ):
        return ()
    changed = {r: found for r, found in replacements.items() if found is not r}
    return tuple([_updated(n, changed, opt) for n in mask_bounds])


def _replacement(r: UOp, opt: Opt, current: dict[int, UOp]) -> UOp | None:
    """The expression for a loop after a move that divided it among cores or tiled it."""
    found = current.get(r.axis)
    if found is None or found.src == r.src:
        return found
    if opt.op is not OptOps.TILE or opt.axis != r.axis:
        return None
    start = scale(found, opt.arg)
    if r.size % opt.arg:
        start = minimum(start, const(r.size - opt.arg))
    return add(start, current[max(current)])


def _updated(mask_bound: MaskBound, changed: dict[UOp, UOp], opt: Opt) -> MaskBound:
    begin, end = mask_bound.begin, mask_bound.end
    if changed:
        begin = reindex(begin, changed)
        end = None if end is None else reindex(end, changed)
    is_split = opt.op in SPLITTING_MOVES and opt.axis == mask_bound.axis
    return MaskBound(
        mask_bound.axis,
        begin,
        end,
        mask_bound.step * (opt.arg or 1) if is_split else mask_bound.step,
    )


def apply_mask_bounds(nest: Nest) -> Nest:
    """Shorten all loops with mask bounds; none if one of them is unrolled or misaligned."""
    found = {r.axis: r for r in axes(nest) if not r.kind.is_unrolled}
    if any(n.axis not in found or not is_mask_aligned(n.step) for n in nest.mask_bounds):
        return nest
    changed: dict[UOp, UOp] = {}  # outer blocks come first: inner bounds refer to them
    for mask_bound in nest.mask_bounds:
        axis, alignment = found[mask_bound.axis], max(MASK_ALIGNMENT, mask_bound.step)
        begin, end = reindex(mask_bound.begin, changed), const(axis.size)
        begin = scale(floordiv(begin, alignment), alignment // mask_bound.step)
        if mask_bound.end is not None:
            last = floordiv(add(reindex(mask_bound.end, changed), alignment - 1), alignment)
            end = minimum(scale(last, alignment // mask_bound.step), end)
        shortened = make_range(axis.axis, sub(end, begin), axis.kind)
        changed[axis] = add(begin, shortened)
        nest = substitute_axis(nest, axis, (shortened,), changed[axis])
    return replace(nest, mask_bounds=())


def is_mask_aligned(step: int) -> bool:
    """True if `step` divides MASK_ALIGNMENT or is a multiple of it."""
    return MASK_ALIGNMENT % step == 0 or step % MASK_ALIGNMENT == 0
