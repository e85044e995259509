"""BLOCK: several rows at a time go through all that is computed for a row, step by step.

What a row keeps in scratch is kept for a block of rows, and each step has loops over the rows of
the block to itself: so a matrix product among the steps can have a tile of several rows.
"""

from __future__ import annotations

from typing import Any

from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.linear import add, minimum, scale
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.reindex import rebuild_open, reindex
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.loops.analysis.mask_alignment import lengthen
from glassgrad.loops.analysis.mask_bounds import limits_of
from glassgrad.loops.moves.privatize_reductions import with_own_sums
from glassgrad.loops.nest import exchange, next_number
from glassgrad.loops.opts import IllegalMove


def block(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """for i: s = f(x[i]); y[i] = g(s)  ->  for o: for i in 64: s[i] = f(x[64·o + i]);
    for i in 64: y[64·o + i] = g(s[i])
    """
    if not nest.outer or nest.outer[-1] is not axis or axis.kind is not AxisKind.LOOP:
        raise IllegalMove("only the innermost of the shared loops goes in blocks")
    if not 1 < amount <= axis.size or target.has_threads:
        raise IllegalMove(f"there are no blocks of {amount} in {axis.size}")
    if axis.size % amount and nest.rewrites:
        raise IllegalMove("storing an element twice would read what was written")
    if any(s.op is Ops.STAGE for s in nest.body.src) or _is_read_elsewhere(nest):
        raise IllegalMove("what is read before it is overwritten is read row by row")
    if any(node.op is Ops.SCAN and axis in node.ranges for node in nest.body.toposort()):
        raise IllegalMove("a scan runs inside of all other loops")
    nest = lengthen(nest, axis)
    number = next_number(nest)
    rows = make_range(number, amount)
    coarse = make_range(axis.axis, -(-axis.size // amount))
    start = minimum(scale(coarse, amount), const(axis.size - amount))
    outer = (*nest.outer[:-1], coarse)
    limits = limits_of(nest.body, axis, start, amount)
    cut = exchange(nest, axis, (coarse, rows), add(start, rows))
    apart = with_own_sums(replace(cut, limits=limits))
    body = _with_own_rows(apart.body, rows, next_number(apart))
    return replace(apart, body=body, outer=outer)


def _is_read_elsewhere(nest: Nest) -> bool:
    """Does a statement read from memory what another one overwrites?"""
    stores = dict.fromkeys(s for s in nest.body.src if s.op is Ops.STORE)
    written = [(store.buffer, store) for store in stores]
    for store in stores if nest.rewrites else ():
        reads = {n.buffer for n in store.src[1].toposort() if n.op is Ops.LOAD}
        if any(buffer in reads and other is not store for buffer, other in written):
            return True
    return False


def _with_own_rows(body: UOp, rows: UOp, number: int) -> UOp:
    """Every STAGE that depends on the row gets loops over all rows, and a place for each; every
    STORE gets such loops to itself.
    """
    done: dict[UOp, UOp] = {}
    for node in body.toposort():
        src = tuple([done[source] for source in node.src])
        same = node if src == node.src else rebuild_open(node, src)
        if node.op is Ops.STAGE and node.arg and rows in node.ranges:
            own = make_range(number, rows.src[0])
            number += 1
            value, *rest = same.src
            places, loops = rest[: len(node.arg)], rest[len(node.arg) :]
            value = reindex(value, {rows: own})
            same = UOp(
                Ops.STAGE, node.dtype, (value, own, *places, own, *loops), (rows.size, *node.arg)
            )
        elif node.op is Ops.STORE and rows in node.bound:
            same = reindex(same, {rows: make_range(number, rows.src[0])})
            number += 1
        elif node.op is Ops.INDEX and _is_widened(node.src[0], same.src[0]):
            gate = () if same.gate is None else (same.gate,)
            same = UOp(Ops.INDEX, node.dtype, (same.src[0], rows, *same.indices, *gate))
        done[node] = same
    return done[body]


def _is_widened(before: UOp, after: UOp) -> bool:
    return before.op is Ops.STAGE and len(after.arg) > len(before.arg)
