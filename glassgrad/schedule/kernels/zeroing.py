"""Zero-fill buffers that a kernel may leave partly unwritten, in a kernel before it.

Every kernel that makes a value writes all of its elements, and ir/coverage.py proves it. Should
that proof fail, readers find zeros and never stale memory.
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


def zero_uncovered(schedule: Schedule) -> Schedule:
    """The schedule with a zeroing kernel before each buffer whose coverage is not proved."""
    kernels: list[Kernel] = []
    buffers: list[tuple[UOp, ...]] = []
    stored: list[tuple[UOp, ...]] = []
    initialized: set[UOp] = set()  # buffers written before, or given
    for kernel, slots, values in zip(
        schedule.kernels, schedule.buffers, schedule.stored, strict=True
    ):
        for base, zeros in _uncovered_buffers(kernel, slots, initialized):
            GlobalCounters.uncovered(1)
            kernels.append(zeros)
            buffers.append((base,))
            stored.append(())
        kernels.append(kernel)
        buffers.append(slots)
        stored.append(values)
        initialized.update(slots)
    if len(kernels) == len(schedule.kernels):
        return schedule
    return replace(schedule, kernels=tuple(kernels), buffers=tuple(buffers), stored=tuple(stored))


def _uncovered_buffers(
    kernel: Kernel, slots: tuple[UOp, ...], initialized: set[UOp]
) -> Iterator[tuple[UOp, Kernel]]:
    for param in uncovered(kernel.body):
        base = slots[param.arg.slot]
        if base.op is not Ops.BUFFER and base not in initialized:
            yield base, _zero_kernel(param)


def _zero_kernel(param: UOp) -> Kernel:
    """for i: for j: y[i, j] = 0"""
    first = param.replace(arg=replace(param.arg, slot=0))
    indices = [make_range(a, n) if n > 1 else ZERO for a, n in enumerate(param.arg.shape)]
    loops = tuple([index for index in indices if index is not ZERO])
    store = UOp(Ops.STORE, dtypes.void, (first.index(*indices), first.const_like(0), *loops))
    return Kernel(UOp(Ops.SINK, dtypes.void, (store,)), loops)
