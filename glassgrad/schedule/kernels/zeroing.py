"""Memory that a kernel may leave unwritten in part is filled with zeros by a kernel before it.

Every kernel that makes a value writes all of its elements, and ir/coverage.py proves it. Should
that fail, zeros are read where nothing was written, and never what was there before.
"""

from __future__ import annotations

from collections.abc import Iterator

from glassgrad.base.counters import GlobalCounters
from glassgrad.base.dtype import dtypes
from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.coverage import uncovered
from glassgrad.ir.linear import ZERO
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Kernel, Schedule
from glassgrad.ir.uop import UOp, make_range


def zero_uncovered(made: Schedule) -> Schedule:
    """The same kernels, with one before each buffer that is not proved to be written as a whole."""
    kernels: list[Kernel] = []
    buffers: list[tuple[UOp, ...]] = []
    stored: list[tuple[UOp, ...]] = []
    known: set[UOp] = set()  # what has been written before, or was there
    for kernel, slots, values in zip(made.kernels, made.buffers, made.stored, strict=True):
        for base, zeros in _missing(kernel, slots, known):
            GlobalCounters.uncovered(1)
            kernels.append(zeros)
            buffers.append((base,))
            stored.append(())
        kernels.append(kernel)
        buffers.append(slots)
        stored.append(values)
        known.update(slots)
    if len(kernels) == len(made.kernels):
        return made
    return replace(made, kernels=tuple(kernels), buffers=tuple(buffers), stored=tuple(stored))


def _missing(
    kernel: Kernel, slots: tuple[UOp, ...], known: set[UOp]
) -> Iterator[tuple[UOp, Kernel]]:
    for param in uncovered(kernel.body):
        base = slots[param.arg.slot]
        if base.op is not Ops.BUFFER and base not in known:
            yield base, _zeros(param)


def _zeros(param: UOp) -> Kernel:
    """for i: for j: y[i, j] = 0"""
    first = param.replace(arg=replace(param.arg, slot=0))
    places = [make_range(a, n) if n > 1 else ZERO for a, n in enumerate(param.arg.shape)]
    loops = tuple([place for place in places if place is not ZERO])
    store = UOp(Ops.STORE, dtypes.void, (first.index(*places), first.const_like(0), *loops))
    return Kernel(UOp(Ops.SINK, dtypes.void, (store,)), loops)
