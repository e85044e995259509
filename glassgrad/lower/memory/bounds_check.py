"""CHECK -> a comparison and a branch that is hardly ever taken: reports out-of-range indices.

An index outside of its axis is stored in the kernel's *error cells*, a parameter with an int64 for
each CHECK that is 0 while all is well, and 0 is used in its place. Cores may write concurrently;
any of the bad indices will do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Param
from glassgrad.ir.uop import UOp

if TYPE_CHECKING:
    from glassgrad.lower.emit import Emitter, UnrollCopy

UNSIGNED = {32: dtypes.uint32, 64: dtypes.uint64}


def emit_check(emitter: Emitter, node: UOp, copy: UnrollCopy) -> UOp:
    """x  ->  if size ≤ unsigned(x): cells[number] = x; x or 0

    A vector is checked as a whole, even if only one lane is asked for.
    """
    emit, (size, slot, number) = emitter.scopes.emit, node.arg
    for lane in emitter.unrolled(node):
        if emitter.is_vector(lane) and lane in copy:
            together = {r: v for r, v in copy.items() if r is not lane}
            vector = emitter.value(node, together)
            return emit(UOp(Ops.GEP, node.dtype, (vector,), copy[lane]))
    lanes = emitter.lanes(node, copy)
    value = emitter.splat(emitter.value(node.src[0], copy), lanes)
    dtype = UNSIGNED[node.dtype.bits]
    bits = emit(value.bitcast(dtype.vec(lanes)))
    last = emitter.constant(UOp(Ops.CONST, dtype, (), min(size - 1, int(dtypes.max(node.dtype)))))
    is_bad = emit(emitter.splat(last, lanes) < bits)
    if emitter.target.reports_indices:
        _report(emitter, _cells(emitter, slot).index(emitter.index_constant(number)), value, is_bad)
    zero = emitter.constant(node.const_like(0))
    return emit(is_bad.where(emitter.splat(zero, lanes), value))


def _report(emitter: Emitter, cell: UOp, value: UOp, is_bad: UOp) -> None:
    """One branch for all lanes, then a gated store for each lane."""
    emit = emitter.scopes.emit
    emit(cell)
    lanes, pairs = value.dtype.count, [(is_bad, value)]
    if lanes > 1:
        bad = [emit(UOp(Ops.GEP, dtypes.bool, (is_bad,), i)) for i in range(lanes)]
        each = [emit(UOp(Ops.GEP, value.dtype.scalar, (value,), i)) for i in range(lanes)]
        pairs = list(zip(bad, each, strict=True))
    is_any = pairs[0][0]
    for one, _ in pairs[1:]:
        is_any = emit(is_any | one)
    lines = emitter.scopes.stack[emitter.scopes.depth_of_instruction(is_any)].lines
    words = [emit(found.cast(dtypes.int64)) for _, found in pairs]
    opened = UOp(Ops.IF, dtypes.void, (is_any,))
    lines.append(opened)
    for (one, _), word in zip(pairs, words, strict=True):
        gated = (
            cell
            if lanes == 1
            else UOp(Ops.INDEX, cell.dtype, (cell, emitter.index_constant(0), one))
        )
        lines += [] if gated is cell else [gated]
        lines.append(UOp(Ops.STORE, dtypes.void, (gated, word)))
    lines.append(UOp(Ops.ENDIF, dtypes.void, (opened,)))


def _cells(emitter: Emitter, slot: int) -> UOp:
    """The parameter that takes out-of-range indices: an element for each CHECK."""
    numbers = [node.arg[2] for node in emitter.body.toposort() if node.op is Ops.CHECK]
    param = Param(slot, (1 + max(numbers),), (1,))
    return emitter.scopes.emit(UOp(Ops.PARAM, dtypes.int64, (), param))
