"""How a loop moves through memory: the distance between the elements of two consecutive steps."""

from __future__ import annotations

from functools import lru_cache

from glassgrad.ir.linear import Linear, flat
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp


def strides_of(buffer: UOp) -> tuple[int, ...]:
    """The element strides of a PARAM, STAGE or STORE, per index."""
    if buffer.op is Ops.STORE:
        return strides_of(buffer.buffer)
    if buffer.op is Ops.PARAM:
        return tuple(buffer.arg.strides)
    strides = [1]
    for n in reversed(buffer.arg[1:]):
        strides.append(strides[-1] * n)
    return tuple(reversed(strides)) if buffer.arg else ()


def stride(index: UOp, axis: UOp) -> int | None:
    """How far one step of the axis moves an INDEX, in elements; None if that is not constant."""
    return _distance(index.indices, index.src[0], axis)


def written_stride(block: UOp, axis: UOp) -> int | None:
    """The same for the element that a STORE or STAGE writes."""
    if block.op is Ops.STORE:
        return stride(block.src[0], axis)
    return _distance(block.scratch_indices, block, axis)


@lru_cache(maxsize=1024)
def _flat(indices: tuple[UOp, ...], buffer: UOp) -> Linear:
    """A flat address as a sum, cached because every axis asks."""
    return flat(indices, strides_of(buffer))


def _distance(indices: tuple[UOp, ...], buffer: UOp, axis: UOp) -> int | None:
    terms, _ = _flat(indices, buffer)
    if any(atom is not axis and axis in atom.ranges for atom in terms):
        return None
    return terms.get(axis, 0)
