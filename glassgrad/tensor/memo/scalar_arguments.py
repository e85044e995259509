"""A number that changes from call to call -> a launch argument instead of a constant.

Constants are part of the code: `w -= rate * w.grad` with a new rate per step would compile a kernel
per step. So once the number of an operator in the user's program has changed twice, the operator
reads it from memory, and one kernel serves all values.
"""

from __future__ import annotations

import struct
import sys
from types import CodeType, FrameType

from glassgrad.base.origin import is_in_package
from glassgrad.engine.capture.recorder import active_recorder
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.memory.allocator import is_file, is_host
from glassgrad.memory.view import View
from glassgrad.tensor.core import device_of

MIN_CHANGES = 2  # of a number before it becomes an argument: one change may be a coincidence
MAX_SITES = 10_000  # operators remembered; beyond, all are forgotten
OPERATOR_MODULES = frozenset(
    f"glassgrad.tensor.{name}"
    for name in (
        "ops.operators",
        "ops.elementwise",
        "compat.in_place_methods",
        "compat.torch_aliases",
    )
)
STRUCT_FORMATS = {"float32": "f", "float64": "d"}


class _OperatorSite:
    """An instruction of the user's program with a number operand; holding the code object keeps its
    id unique.
    """

    __slots__ = ("changes", "code", "value")

    def __init__(self, code: CodeType, value: float) -> None:
        self.code = code
        self.value = value
        self.changes = 0


OPERATOR_SITES: dict[tuple[int, int], _OperatorSite] = {}


def as_argument(number: UOp, other: UOp) -> UOp:
    """The constant itself, or a buffer with its value if it keeps changing at this instruction.

    `other` is the operand that it is combined with.
    """
    if number.dtype.name not in STRUCT_FORMATS or active_recorder() is not None:
        return number
    frame = _user_frame()
    if is_in_package(frame):
        return number
    key = (id(frame.f_code), frame.f_lasti)
    known = OPERATOR_SITES.get(key)
    if known is None:
        if len(OPERATOR_SITES) >= MAX_SITES:
            OPERATOR_SITES.clear()
        OPERATOR_SITES[key] = _OperatorSite(frame.f_code, number.arg)
        return number
    if known.value != number.arg:
        known.value = number.arg
        known.changes += 1
    if known.changes < MIN_CHANGES:
        return number
    device = device_of(other)
    return _scalar_buffer(number, device) if is_host(device) and not is_file(device) else number


def _user_frame() -> FrameType:
    """The frame of the user's code that called the operator."""
    frame = sys._getframe(2)
    while frame.f_globals.get("__name__") in OPERATOR_MODULES and frame.f_back is not None:
        frame = frame.f_back
    return frame


def _scalar_buffer(number: UOp, device: str) -> UOp:
    raw = bytearray(struct.pack(STRUCT_FORMATS[number.dtype.name], number.arg))
    view = View.from_host(raw, number.dtype, (), device)
    return UOp(Ops.BUFFER, number.dtype, (), view)
