"""Recipe -> neighbouring recipes: one move more, one move less, or one of another size."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp
from glassgrad.loops.moves.table import apply_moves
from glassgrad.loops.nest import BINDERS, axes
from glassgrad.loops.opts import IllegalMove, Opt, OptOps, Recipe

UNROLL_AMOUNTS = (2, 4, 6, 8, 16, 32)  # elements or steps per iteration
TILE_AMOUNTS = (8, 32, 128)  # iterations per block
THREAD_COUNTS = (16, 64)
MAX_COPIES = 256  # copies of one statement; with more, compile time exceeds what a search can gain
SIZED_MOVES = frozenset(
    (OptOps.UPCAST, OptOps.UNROLL, OptOps.TILE, OptOps.LOCAL, OptOps.GROUP)
    + (OptOps.ROW_BLOCK, OptOps.ONLINE_SOFTMAX, OptOps.ATTENTION_BACKWARD)
)


def neighbours(start: Nest, recipe: Recipe, target: Target) -> Iterator[Nest]:
    """The legal nests whose recipe differs from this one by one change."""
    for changed in (*_resized(recipe), *_shorter(recipe), *_longer(start, recipe, target)):
        nest = try_recipe(start, changed, target)
        if nest is not None and max_unroll_copies(nest) <= MAX_COPIES:
            yield nest


def try_recipe(start: Nest, recipe: Recipe, target: Target) -> Nest | None:
    """The nest after these moves; None if one is illegal."""
    try:
        return apply_moves(start, recipe, target)
    except IllegalMove:
        return None


def max_unroll_copies(nest: Nest) -> int:
    """The number of unrolled copies, counting lanes, of the statement with most."""
    binders = [node for node in nest.body.toposort() if node.op in BINDERS]
    return max((_unroll_copies({*node.ranges, *node.bound}) for node in binders), default=1)


def _unroll_copies(ranges: set[UOp]) -> int:
    return prod(r.size for r in ranges if r.kind.is_unrolled)


def _resized(recipe: Recipe) -> Iterator[Recipe]:
    for position, opt in enumerate(recipe):
        if opt.op in SIZED_MOVES and isinstance(opt.arg, int):
            for amount in (opt.arg * 2, opt.arg // 2, opt.arg + opt.arg // 2):
                if amount > 1:
                    yield (*recipe[:position], replace(opt, arg=amount), *recipe[position + 1 :])


def _shorter(recipe: Recipe) -> Iterator[Recipe]:
    for position in range(len(recipe)):
        yield (*recipe[:position], *recipe[position + 1 :])


def _longer(start: Nest, recipe: Recipe, target: Target) -> Iterator[Recipe]:
    """Recipes with one more move, inserted before trailing COREs: a divided axis cannot be moved
    any more.
    """
    end = len(recipe)
    while end and recipe[end - 1].op is OptOps.CORE:
        end -= 1
    nest = try_recipe(start, recipe[:end], target)
    if nest is not None:
        for opt in _moves(nest, target):
            is_core = opt.op is OptOps.CORE
            yield (*recipe[:end], opt) if is_core else (*recipe[:end], opt, *recipe[end:])


def _moves(nest: Nest, target: Target) -> Iterator[Opt]:
    """All plausible moves, with plausible sizes."""
    slots = sorted({n.arg.slot for n in nest.body.toposort() if n.op is Ops.PARAM})
    found = [axis for axis in axes(nest) if not axis.kind.is_unrolled]
    for axis in found:
        yield from _moves_of(axis, target)
        if axis.kind is AxisKind.REDUCE:
            yield Opt(OptOps.SKIP_ZEROS, axis.axis)
        if not target.has_threads:
            yield Opt(OptOps.CORE, axis.axis)
            for slot in slots:
                if target.dots and axis.kind is AxisKind.REDUCE:
                    yield Opt(OptOps.DOT, axis.axis, slot)
                yield Opt(OptOps.PACK, axis.axis, slot)
                yield Opt(OptOps.CACHE_READ, axis.axis, slot)
    for number, axis in enumerate(found):
        for other in found[number + 1 :]:
            yield Opt(OptOps.SWAP, axis.axis, other.axis)
        for other in found[number + 1 : number + 2]:
            yield Opt(OptOps.COALESCE, axis.axis, other.axis)


def _moves_of(axis: UOp, target: Target) -> Iterator[Opt]:
    is_short = 1 < axis.size <= max(UNROLL_AMOUNTS)
    for amount in sorted({*UNROLL_AMOUNTS, axis.size} if is_short else UNROLL_AMOUNTS):
        yield Opt(
            OptOps.UNROLL if axis.kind is AxisKind.REDUCE else OptOps.UPCAST, axis.axis, amount
        )
    for amount in TILE_AMOUNTS:
        yield Opt(OptOps.TILE, axis.axis, amount)
    yield Opt(OptOps.ACCUMULATE, axis.axis, 4)
    if target.has_threads:
        for amount in THREAD_COUNTS:
            yield Opt(OptOps.LOCAL, axis.axis, amount)
            yield Opt(OptOps.GROUPTOP, axis.axis, amount)
