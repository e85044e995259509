"""STOREs -> non-temporal STOREs where results are large, contiguous and not read in this kernel.

A non-temporal store does not read the cache line that it overwrites, which is a third of the
traffic of an addition. The written data is not cached, so only results that would not fit into the
last-level cache anyway are streamed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import TYPE_CHECKING

from glassgrad.ir.linear import Linear, linear
from glassgrad.ir.ops import NON_TEMPORAL, AxisKind, Ops
from glassgrad.ir.uop import UOp

if TYPE_CHECKING:
    from glassgrad.lower.emit import Emitter

MIN_SHARE_OF_L3 = 3, 4  # a result below 3/4 of L3 stays cached for its readers


def mark_non_temporal_stores(lines: Sequence[UOp], emitter: Emitter) -> Sequence[UOp]:
    """The same instructions; eligible STOREs are marked NON_TEMPORAL."""
    stores = [node for node in emitter.body.src if node.op is Ops.STORE]
    if emitter.may_alias or not emitter.target.has_vector_alu:
        return lines
    held = {store.buffer for store in stores if not _can_stream(emitter, store)}
    streamed = {store.buffer for store in stores} - held
    return [_marked(line, streamed) for line in lines] if streamed else lines


def _marked(line: UOp, streamed: set[UOp]) -> UOp:
    if line.op is not Ops.STORE:
        return line
    node = line.src[0]
    while node.src:
        node = node.src[0]
    return line.replace(arg=NON_TEMPORAL) if node in streamed else line


def _can_stream(emitter: Emitter, store: UOp) -> bool:
    buffer = store.buffer
    part, whole = MIN_SHARE_OF_L3
    nbytes = buffer.arg.numel * buffer.dtype.itemsize
    if nbytes * whole < emitter.target.l3_bytes * part:
        return False
    if store.arg is not None or store.src[0].gate is not None or buffer.dtype.kind == "bool":
        return False
    return _writes_in_order(emitter, store) and not _is_read(emitter.body, buffer)


def _writes_in_order(emitter: Emitter, store: UOp) -> bool:
    """True if whole aligned vectors follow each other until cache lines are full."""
    terms, offset = emitter.flat(store.src[0])
    unrolled = [r for r in store.bound if r.kind.is_unrolled]
    distances = sorted([(terms.get(r, 0), r.size) for r in unrolled])
    reached = 1
    for distance, size in distances:
        if distance != reached:
            return False
        reached *= size
    lanes = [r.size for r in unrolled if r.kind is AxisKind.LANE]
    if not lanes or lanes[0] * store.src[1].dtype.itemsize != emitter.target.vector_bytes:
        return False
    away = {atom: factor for atom, factor in terms.items() if atom not in unrolled}
    if divisor(Linear(away, offset)) % lanes[0]:
        return False
    loops = [r for r in store.bound if r not in unrolled]
    goes_on = bool(loops) and terms.get(loops[-1]) == reached
    return goes_on or reached * store.src[1].dtype.itemsize % emitter.target.line_bytes == 0


def divisor(offset: Linear) -> int:
    """A number that divides a linear sum for all values of its ranges; 0 for the sum 0."""
    terms, found = offset
    for atom, factor in terms.items():
        found = gcd(found, factor * _divisor_of(atom))
    return found


def _divisor_of(atom: UOp) -> int:
    if atom.op is Ops.MIN:  # the start of a last block that overlaps the one before
        return gcd(*[divisor(linear(source)) for source in atom.src])
    return 1


def _is_read(body: UOp, buffer: UOp) -> bool:
    """True if the kernel reads the buffer, or a value stored in it."""
    for node in body.toposort():
        if node.op is Ops.LOAD:
            base = node.buffer
            if base is buffer or (base.op is Ops.STORE and base.buffer is buffer):
                return True
    return False
