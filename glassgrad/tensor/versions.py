"""a value -> the buffer that holds it, and whether what that held was overwritten since."""

from __future__ import annotations

from weakref import WeakKeyDictionary, WeakSet, ref

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.memory.view import View

BUFFER, WINDOW = Ops.BUFFER, Ops.WINDOW
PARTS = frozenset((Ops.SHRINK, Ops.RESHAPE, Ops.PERMUTE, Ops.FLIP, Ops.DETACH))
OVERWRITTEN: WeakSet[View] = WeakSet()  # a View stands for one version of the contents
WRITERS: WeakKeyDictionary[UOp, ref[UOp]] = WeakKeyDictionary()  # version -> the write that ends it


def is_part(uop: UOp) -> bool:
    """Is this some of another value's elements, each once, so that it can be written to there?"""
    return uop.op in PARTS or (uop.op is WINDOW and uop.arg[1] == 1)  # every so many-th element


def current(uop: UOp) -> UOp | None:
    """The buffer that holds this value, if it was computed and not overwritten since."""
    if uop.op is BUFFER:
        return uop
    held: UOp | None = uop.realized
    if held is not None and held.arg in OVERWRITTEN:
        held = uop.realized = None
    return held
