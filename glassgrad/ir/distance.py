"""How far memory is: what the near caches of a core do not hold has to be waited for."""

from __future__ import annotations

from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp


def exceeds_cache(index: UOp, target: Target) -> bool:
    """Is it a place in memory that is too large for the near caches, and read in any case?"""
    buffer = index.src[0]
    if buffer.op is not Ops.PARAM or index.gate is not None:
        return False
    nbytes: int = buffer.arg.numel * buffer.dtype.itemsize
    return nbytes > target.l2_bytes
