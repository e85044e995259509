"""ROW_BLOCK: strip-mine the rows and distribute the statements over each block of rows.

Scratch gets a row dimension, and each statement its own loop over the rows of a block, so that a
matrix product among the statements can have a register tile of several rows.
"""

from __future__ import annotations

from typing import Any

from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.linear import add, minimum, scale
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.reindex import rebuild_index, reindex
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.loops.analysis.mask_alignment import align_masked_loops
from glassgrad.loops.analysis.mask_bounds import mask_bounds_of
from glassgrad.loops.moves.privatize_reductions import privatize_reductions
from glassgrad.loops.nest import next_axis_number, substitute_axis
from glassgrad.loops.opts import IllegalMove


def row_block(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """for i: s = f(x[i]); y[i] = g(s)
    ->  for o: for i in 64: s[i] = f(x[64·o + i]); for i in 64: y[64·o + i] = g(s[i])
    """
    if not nest.outer or nest.outer[-1] is not axis or axis.kind is not AxisKind.LOOP:
        raise IllegalMove("ROW_BLOCK needs the innermost of the shared loops")
    if not 1 < amount <= axis.size or target.has_threads:
        raise IllegalMove(
            f"a block of {amount} does not fit an axis of {axis.size}, or the target has threads"
        )
    if axis.size % amount and nest.may_alias:
        raise IllegalMove("the overlapping tail would read elements it has already overwritten")
    if any(s.op is Ops.STAGE for s in nest.body.src) or _reads_other_outputs(nest):
        raise IllegalMove("a statement reads a buffer that another statement overwrites row by row")
    if any(node.op is Ops.SCAN and axis in node.ranges for node in nest.body.toposort()):
        raise IllegalMove("a scan must stay inside of all other loops")
    nest = align_masked_loops(nest, axis)
    number = next_axis_number(nest)
    rows = make_range(number, amount)
    coarse = make_range(axis.axis, -(-axis.size // amount))
    start = minimum(scale(coarse, amount), const(axis.size - amount))
    outer = (*nest.outer[:-1], coarse)
    mask_bounds = mask_bounds_of(nest.body, axis, start, amount)
    strip_mined = substitute_axis(nest, axis, (coarse, rows), add(start, rows))
    privatized = privatize_reductions(replace(strip_mined, mask_bounds=mask_bounds))
    body = _distribute(privatized.body, rows, next_axis_number(privatized))
    return replace(privatized, body=body, outer=outer)


def _reads_other_outputs(nest: Nest) -> bool:
    """True if a statement reads a buffer that another one overwrites."""
    stores = dict.fromkeys(s for s in nest.body.src if s.op is Ops.STORE)
    written = [(store.buffer, store) for store in stores]
    for store in stores if nest.may_alias else ():
        reads = {n.buffer for n in store.src[1].toposort() if n.op is Ops.LOAD}
        if any(buffer in reads and other is not store for buffer, other in written):
            return True
    return False


def _distribute(body: UOp, rows: UOp, number: int) -> UOp:
    """Give every STAGE that depends on the row a row dimension, and STAGEs and STOREs their own row
    loops.
    """
    done: dict[UOp, UOp] = {}
    for node in body.toposort():
        src = tuple([done[source] for source in node.src])
        same = node if src == node.src else rebuild_index(node, src)
        if node.op is Ops.STAGE and node.arg and rows in node.ranges:
            own = make_range(number, rows.src[0])
            number += 1
            value, *rest = same.src
            indices, loops = rest[: len(node.arg)], rest[len(node.arg) :]
            value = reindex(value, {rows: own})
            same = UOp(
                Ops.STAGE, node.dtype, (value, own, *indices, own, *loops), (rows.size, *node.arg)
            )
        elif node.op is Ops.STORE and rows in node.bound:
            same = reindex(same, {rows: make_range(number, rows.src[0])})
            number += 1
        elif node.op is Ops.INDEX and _has_row_dimension(node.src[0], same.src[0]):
            gate = () if same.gate is None else (same.gate,)
            same = UOp(Ops.INDEX, node.dtype, (same.src[0], rows, *same.indices, *gate))
        done[node] = same
    return done[body]


def _has_row_dimension(before: UOp, after: UOp) -> bool:
    return before.op is Ops.STAGE and len(after.arg) > len(before.arg)
