"""INDEX, Target -> whether its buffer exceeds the private caches, so that accesses to it stall."""

from __future__ import annotations

from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp


def exceeds_cache(index: UOp, target: Target) -> bool:
    """True if the INDEX is unconditional and into a buffer larger than L2."""
    buffer = index.src[0]
    if buffer.op is not Ops.PARAM or index.gate is not None:
        return False
    nbytes: int = buffer.arg.numel * buffer.dtype.itemsize
    return nbytes > target.l2_bytes
