"""APART: a tile of sums goes to scratch, and what becomes of each is written once, in a loop.

Sums pay for every register that they have side by side; what is done to them afterwards is done
once, and twelve copies of it take longer to compile than they gain.
"""

from __future__ import annotations

from typing import Any

from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.in_place import is_in_place
from glassgrad.ir.linear import add, scale
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.reindex import reindex
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp, make_range
from glassgrad.loops.moves.pack import reading_order
from glassgrad.loops.nest import exchange, next_number, reorder
from glassgrad.loops.opts import IllegalMove

COMPUTED = frozenset((Ops.REDUCE, Ops.SCAN, Ops.STAGE, Ops.STORE))


def apart(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """y[0] = f(sum of x[0]); … y[5] = f(sum of x[5])
    ->  s[0] = sum of x[0]; … s[5] = sum of x[5]; for i in 3: y[2i] = f(s[2i]); y[2i+1] = …

    Of an axis of lanes, sums keep their lanes, and what becomes of them may have others.
    """
    is_unrolled = axis.kind in (AxisKind.UPCAST, AxisKind.LANE)
    if not is_unrolled or axis not in nest.outer or target.has_threads:
        raise IllegalMove("only registers of results become a loop again")
    if not 0 < amount < axis.size or axis.size % amount:
        raise IllegalMove(f"{amount} at a time do not divide {axis.size}")
    stores = nest.body.src
    if any(s.op is not Ops.STORE or s.arg is not None or s.bound != nest.outer for s in stores):
        raise IllegalMove("only a nest whose stores share all of their loops is taken apart")
    if nest.limits or not is_in_place(stores, _is_computed_before):
        raise IllegalMove("loops may be shorter here, or something else reads what is written")
    nest = _with_kept_sums(nest, axis)
    number = next_number(nest)
    coarse = make_range(axis.axis, axis.size // amount)
    fine = make_range(number, amount, AxisKind.UPCAST)
    if amount == 1:
        nest = exchange(nest, axis, (coarse,), coarse)
    else:
        nest = exchange(nest, axis, (coarse, fine), add(scale(coarse, amount), fine))
    around = tuple([r for r in nest.outer if r is not coarse])
    nest = reorder(nest, dict(zip(nest.outer, (*around, coarse), strict=True)))
    return replace(nest, outer=around)


def _with_kept_sums(nest: Nest, axis: UOp) -> Nest:
    """Sums that depend on the axis in scratch: all that are there when the tile is written."""
    registers = [r for r in nest.outer if r.kind.is_unrolled]
    number = next_number(nest)
    fresh = {r: make_range(number + i, r.src[0], r.kind) for i, r in enumerate(registers)}
    kept: dict[UOp, UOp] = {}
    for found in _behind(nest):
        if axis not in found.ranges:
            continue
        if found.op is not Ops.REDUCE:
            raise IllegalMove("something else than a sum is computed for these registers")
        places = reading_order(nest, [r for r in registers if r in found.ranges])
        loops = [fresh[r] for r in places]
        shape = tuple([r.size for r in places])
        stage = UOp(Ops.STAGE, found.dtype, (reindex(found, fresh), *loops, *loops), shape)
        kept[found] = stage.index(*places).load()
    return replace(nest, body=nest.body.substitute(kept))


def _behind(nest: Nest) -> list[UOp]:
    """What the stores of a nest need of other blocks: sums, scratch, what was stored before."""
    found: dict[UOp, None] = {}
    for store in nest.body.src:
        nodes = store.src[1].toposort(stop=_is_computed_before)
        found |= dict.fromkeys(node for node in nodes if node.op in COMPUTED)
    return list(found)


def _is_computed_before(node: UOp) -> bool:
    return node.op in COMPUTED
