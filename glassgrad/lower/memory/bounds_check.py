"""CHECK -> a comparison: an index outside of its axis is written down, and 0 is used instead.

Bad indices go to the kernel's *cells*, a parameter of its own with an int64 for each CHECK, 0 until
something is found. Cores may write there at once; any of their findings will do.
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

    The lanes of a vector are looked at together, also where one of them is asked for.
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


def _report(emitter: Emitter, place: UOp, value: UOp, is_bad: UOp) -> None:
    """One branch for all lanes, which is hardly ever taken; then one for each."""
    emit = emitter.scopes.emit
    emit(place)
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
            place
            if lanes == 1
            else UOp(Ops.INDEX, place.dtype, (place, emitter.index_constant(0), one))
        )
        lines += [] if gated is place else [gated]
        lines.append(UOp(Ops.STORE, dtypes.void, (gated, word)))
    lines.append(UOp(Ops.ENDIF, dtypes.void, (opened,)))


def _cells(emitter: Emitter, slot: int) -> UOp:
    """The parameter that takes bad indices: an element for each CHECK."""
    numbers = [node.arg[2] for node in emitter.body.toposort() if node.op is Ops.CHECK]
    param = Param(slot, (1 + max(numbers),), (1,))
    return emitter.scopes.emit(UOp(Ops.PARAM, dtypes.int64, (), param))
