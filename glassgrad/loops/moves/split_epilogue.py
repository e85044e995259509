"""SPLIT_EPILOGUE: store a register tile of sums to scratch, and run the epilogue over it in a loop.

The sums need all registers of the tile at once. The epilogue does not, and a dozen unrolled copies
of it take longer to compile than they gain.
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
from glassgrad.loops.nest import next_axis_number, reading_order, reorder, substitute_axis
from glassgrad.loops.opts import IllegalMove

EPILOGUE_INPUTS = frozenset((Ops.REDUCE, Ops.SCAN, Ops.STAGE, Ops.STORE))


def split_epilogue(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """y[0] = f(sum of x[0]); … y[5] = f(sum of x[5])
    ->  s[0] = sum of x[0]; … s[5] = sum of x[5]; for i in 3: y[2i] = f(s[2i]); y[2i+1] = …

    If the axis is one of lanes, the sums keep their lanes and the epilogue may have others.
    """
    is_unrolled = axis.kind in (AxisKind.UPCAST, AxisKind.LANE)
    if not is_unrolled or axis not in nest.outer or target.has_threads:
        raise IllegalMove(
            "SPLIT_EPILOGUE needs an unrolled output axis, on a target without threads"
        )
    if not 0 < amount < axis.size or axis.size % amount:
        raise IllegalMove(f"{amount} does not evenly divide {axis.size}")
    stores = nest.body.src
    if any(s.op is not Ops.STORE or s.arg is not None or s.bound != nest.outer for s in stores):
        raise IllegalMove("SPLIT_EPILOGUE needs stores that share all of their loops")
    if nest.mask_bounds or not is_in_place(stores, _is_epilogue_input):
        raise IllegalMove("loops have mask bounds, or the nest reads a buffer that it writes")
    nest = _stage_sums(nest, axis)
    number = next_axis_number(nest)
    outer = make_range(axis.axis, axis.size // amount)
    inner = make_range(number, amount, AxisKind.UPCAST)
    if amount == 1:
        nest = substitute_axis(nest, axis, (outer,), outer)
    else:
        nest = substitute_axis(nest, axis, (outer, inner), add(scale(outer, amount), inner))
    shared = tuple([r for r in nest.outer if r is not outer])
    nest = reorder(nest, dict(zip(nest.outer, (*shared, outer), strict=True)))
    return replace(nest, outer=shared)


def _stage_sums(nest: Nest, axis: UOp) -> Nest:
    """Stage the sums that depend on the axis: all are complete before the tile is written."""
    registers = [r for r in nest.outer if r.kind.is_unrolled]
    number = next_axis_number(nest)
    renamed = {r: make_range(number + i, r.src[0], r.kind) for i, r in enumerate(registers)}
    staged: dict[UOp, UOp] = {}
    for source in _epilogue_inputs(nest):
        if axis not in source.ranges:
            continue
        if source.op is not Ops.REDUCE:
            raise IllegalMove("the epilogue of these registers needs more than sums")
        indices = reading_order(nest, [r for r in registers if r in source.ranges])
        loops = [renamed[r] for r in indices]
        shape = tuple([r.size for r in indices])
        stage = UOp(Ops.STAGE, source.dtype, (reindex(source, renamed), *loops, *loops), shape)
        staged[source] = stage.index(*indices).load()
    return replace(nest, body=nest.body.substitute(staged))


def _epilogue_inputs(nest: Nest) -> list[UOp]:
    """The sums, scratch and earlier stores that the values of the stores depend on."""
    found: dict[UOp, None] = {}
    for store in nest.body.src:
        nodes = store.src[1].toposort(stop=_is_epilogue_input)
        found |= dict.fromkeys(node for node in nodes if node.op in EPILOGUE_INPUTS)
    return list(found)


def _is_epilogue_input(node: UOp) -> bool:
    return node.op in EPILOGUE_INPUTS
