"""Recipe -> recipes one change away: a move more, a move less, or one of another size."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp
from glassgrad.loops.moves.table import apply_moves
from glassgrad.loops.nest import BLOCKS, axes
from glassgrad.loops.opts import IllegalMove, Opt, OptOps, Recipe

REGISTERS = (2, 4, 6, 8, 16, 32)  # elements or steps at once
CACHES = (8, 32, 128)  # blocks of loops
THREADS = (16, 64)
MOST_COPIES = 256  # of one statement: with more, compiling takes longer than a search can gain
SIZED = frozenset(
    (OptOps.UPCAST, OptOps.UNROLL, OptOps.TILE, OptOps.LOCAL, OptOps.GROUP)
    + (OptOps.BLOCK, OptOps.CARRY, OptOps.SWEEP)
)


def neighbours(start: Nest, recipe: Recipe, target: Target) -> Iterator[Nest]:
    """What one change of a recipe makes of a nest without moves; legal ones only."""
    for changed in (*_resized(recipe), *_shorter(recipe), *_longer(start, recipe, target)):
        nest = attempt(start, changed, target)
        if nest is not None and most_copies(nest) <= MOST_COPIES:
            yield nest


def attempt(start: Nest, recipe: Recipe, target: Target) -> Nest | None:
    """The nest after these moves; None if one cannot be made."""
    try:
        return apply_moves(start, recipe, target)
    except IllegalMove:
        return None


def most_copies(nest: Nest) -> int:
    """How often the statement that is unrolled most is written out, lanes counted one by one."""
    found = [node for node in nest.body.toposort() if node.op in BLOCKS]
    return max((_copies({*node.ranges, *node.bound}) for node in found), default=1)


def _copies(ranges: set[UOp]) -> int:
    return prod(r.size for r in ranges if r.kind.is_unrolled)


def _resized(recipe: Recipe) -> Iterator[Recipe]:
    for place, opt in enumerate(recipe):
        if opt.op in SIZED and isinstance(opt.arg, int):
            for amount in (opt.arg * 2, opt.arg // 2, opt.arg + opt.arg // 2):
                if amount > 1:
                    yield (*recipe[:place], replace(opt, arg=amount), *recipe[place + 1 :])


def _shorter(recipe: Recipe) -> Iterator[Recipe]:
    for place in range(len(recipe)):
        yield (*recipe[:place], *recipe[place + 1 :])


def _longer(start: Nest, recipe: Recipe, target: Target) -> Iterator[Recipe]:
    """A move more at the end, but before cores are given out: that closes an axis for others."""
    end = len(recipe)
    while end and recipe[end - 1].op is OptOps.CORE:
        end -= 1
    nest = attempt(start, recipe[:end], target)
    if nest is not None:
        for opt in _moves(nest, target):
            is_divided = opt.op is OptOps.CORE
            yield (*recipe[:end], opt) if is_divided else (*recipe[:end], opt, *recipe[end:])


def _moves(nest: Nest, target: Target) -> Iterator[Opt]:
    """Every move that might be legal, of sizes that might be good."""
    slots = sorted({n.arg.slot for n in nest.body.toposort() if n.op is Ops.PARAM})
    found = [axis for axis in axes(nest) if not axis.kind.is_unrolled]
    for axis in found:
        yield from _moves_of(axis, target)
        if axis.kind is AxisKind.REDUCE:
            yield Opt(OptOps.SKIP, axis.axis)
        if not target.has_threads:
            yield Opt(OptOps.CORE, axis.axis)
            for slot in slots:
                if target.dots and axis.kind is AxisKind.REDUCE:
                    yield Opt(OptOps.DOT, axis.axis, slot)
                yield Opt(OptOps.STAGE, axis.axis, slot)
                yield Opt(OptOps.WINDOW, axis.axis, slot)
    for number, axis in enumerate(found):
        for other in found[number + 1 :]:
            yield Opt(OptOps.SWAP, axis.axis, other.axis)
        for other in found[number + 1 : number + 2]:
            yield Opt(OptOps.JOIN, axis.axis, other.axis)


def _moves_of(axis: UOp, target: Target) -> Iterator[Opt]:
    is_short = 1 < axis.size <= max(REGISTERS)
    for amount in sorted({*REGISTERS, axis.size} if is_short else REGISTERS):
        yield Opt(
            OptOps.UNROLL if axis.kind is AxisKind.REDUCE else OptOps.UPCAST, axis.axis, amount
        )
    for amount in CACHES:
        yield Opt(OptOps.TILE, axis.axis, amount)
    yield Opt(OptOps.ACCUMULATE, axis.axis, 4)
    if target.has_threads:
        for amount in THREADS:
            yield Opt(OptOps.LOCAL, axis.axis, amount)
            yield Opt(OptOps.GROUPTOP, axis.axis, amount)
