"""Tensor.zeros -> fresh memory, which reads as zeros: no kernel runs."""

from __future__ import annotations

from math import copysign

from glassgrad.engine.capture.recorder import active_recorder
from glassgrad.ir.ops import Ops
from glassgrad.ir.size import sizes_in
from glassgrad.ir.uop import UOp, set_realized
from glassgrad.memory.view import View
from glassgrad.tensor.device_names import canonical_device

BUFFER, CONST, DETACH = Ops.BUFFER, Ops.CONST, Ops.DETACH
REPEATED = frozenset((Ops.EXPAND, Ops.RESHAPE))


def fresh_zeros(uop: UOp) -> UOp | None:
    """The buffer for a tensor of zeros; None for any other value.

    A captured function needs a kernel instead, as its replays write zeros to the same memory again.
    """
    if not is_zeros(uop) or sizes_in(uop.shape) or active_recorder() is not None:
        return None
    held = UOp(BUFFER, uop.dtype, (), View.empty(canonical_device(None), uop.shape, uop.dtype))
    held.origin = uop.origin
    set_realized(uop, held)
    return held


def is_zeros(uop: UOp) -> bool:
    """True for the node that `Tensor.zeros` makes on the default device."""
    if uop.op is not DETACH or uop.arg is None:
        return False
    value = uop.src[0]
    while value.op in REPEATED:
        value = value.src[0]
    return value.op is CONST and value.arg == 0 and copysign(1.0, value.arg) > 0
