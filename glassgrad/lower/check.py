"""CHECK -> a comparison: an index outside of its axis is written down, and 0 is used instead.

Bad indices go to the kernel's *cells*, a parameter of its own with an int64 for each CHECK, 0 until
something is found. Cores may write there at once; any of their findings will do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Param
from glassgrad.ir.uop import UOp

if TYPE_CHECKING:
    from glassgrad.lower.emit import Emitter, Instance

UNSIGNED = {32: dtypes.uint32, 64: dtypes.uint64}


def check(emitter: Emitter, node: UOp, instance: Instance) -> UOp:
    """x  ->  if size ≤ unsigned(x): cells[number] = x; x or 0"""
    for lane in emitter.unrolled(node):
        if lane.kind is AxisKind.LANE and lane not in instance:
            each = [emitter.value(node, {**instance, lane: i}) for i in range(lane.size)]
            return emitter.scopes.emit(UOp(Ops.STACK, node.dtype.vec(lane.size), tuple(each)))
    emit, (size, slot, number) = emitter.scopes.emit, node.arg
    value = emitter.value(node.src[0], instance)
    bits = emit(value.bitcast(UNSIGNED[value.dtype.bits]))
    last = emit(bits.const_like(min(size - 1, int(dtypes.max(value.dtype)))))
    is_bad = emit(last < bits)
    if emitter.target.reports_indices:
        place = emit(_cells(emitter, slot).index(emitter.number(number)))
        report = UOp(Ops.STORE, dtypes.void, (place, emit(value.cast(dtypes.int64))))
        opened = UOp(Ops.IF, dtypes.void, (is_bad,))
        closed = UOp(Ops.ENDIF, dtypes.void, (opened,))
        emitter.scopes.stack[emitter.scopes.where(is_bad)].lines += [opened, report, closed]
    return emit(is_bad.where(emit(value.const_like(0)), value))


def _cells(emitter: Emitter, slot: int) -> UOp:
    """The parameter that takes bad indices: an element for each CHECK."""
    numbers = [node.arg[2] for node in emitter.body.toposort() if node.op is Ops.CHECK]
    param = Param(slot, (1 + max(numbers),), (1,))
    return emitter.scopes.emit(UOp(Ops.PARAM, dtypes.int64, (), param))
