"""Programs written by hand, uop by uop, and a way to run them on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Param, Program, Source, Target
from glassgrad.ir.uop import UOp
from glassgrad.memory.view import View
from glassgrad.render import render

I64 = dtypes.int64


class Lines:
    """Collects uops in order, sources before users, constants as they come."""

    def __init__(self) -> None:
        self.uops: list[UOp] = []
        self.seen: set[UOp] = set()

    def add(self, uop: UOp) -> UOp:
        """Append a uop and, before it, every source that does not stand there yet."""
        for node in uop.toposort(stop=self.seen.__contains__):
            if node not in self.seen:
                self.seen.add(node)
                self.uops.append(node)
        return uop

    def param(self, slot: int, dtype: DType, size: int = 1) -> UOp:
        return self.add(UOp(Ops.PARAM, dtype, (), Param(slot, (size,), (1,))))

    def loop(self, number: int, size: int | UOp, kind: AxisKind = AxisKind.LOOP) -> UOp:
        bound = size if isinstance(size, UOp) else integer(size)
        return self.add(UOp(Ops.RANGE, I64, (bound,), (number, kind)))

    def end(self, loop: UOp) -> UOp:
        return self.add(UOp(Ops.END, dtypes.void, (loop,)))

    def acc(self, start: UOp, number: int = 0) -> UOp:
        return self.add(UOp(Ops.ACC, start.dtype, (start,), number))

    def assign(self, acc: UOp, value: UOp) -> UOp:
        return self.add(UOp(Ops.ASSIGN, acc.dtype, (acc, value)))

    def store(self, place: UOp, value: UOp) -> UOp:
        return self.add(UOp(Ops.STORE, dtypes.void, (place, value)))

    def after(self, value: UOp, *done: UOp) -> UOp:
        return self.add(UOp(Ops.AFTER, value.dtype, (value, *done)))

    def program(self, name: str = "kernel", cores: int = 1, scratch_bytes: int = 0) -> Program:
        return Program(name, tuple(self.uops), cores=cores, scratch_bytes=scratch_bytes)


def integer(value: int) -> UOp:
    return UOp(Ops.CONST, I64, (), value)


def load(place: UOp, count: int = 1) -> UOp:
    return UOp(Ops.LOAD, place.dtype.vec(count), (place,))


def splat(value: UOp, count: int) -> UOp:
    return UOp(Ops.STACK, value.dtype.vec(count), (value,) * count)


def elementwise(
    function: Callable[..., UOp],
    sources: Sequence[DType],
    result: DType,
    size: int,
    width: int = 1,
    cores: int = 1,
) -> Program:
    """out[i] = function(a[i], b[i], …), `width` elements at a time."""
    lines = Lines()
    out = lines.param(0, result)
    ins = [lines.param(slot, dtype) for slot, dtype in enumerate(sources, 1)]
    steps = size // width
    assert steps * width == size and steps % cores == 0
    core = lines.loop(0, cores, AxisKind.CORE) if cores > 1 else None
    inner = lines.loop(1, steps // cores)
    step = inner if core is None else core * integer(steps // cores) + inner
    place = lines.add(step * integer(width))
    values = [lines.add(load(buffer.index(place), width)) for buffer in ins]
    lines.store(out.index(place), function(*values))
    lines.end(inner)
    if core is not None:
        lines.end(core)
    return lines.program("elementwise", cores=cores)


def source_of(program: Program) -> Source:
    return render(program, Target("CPU", "llvm"))


def address(array: np.ndarray) -> int:
    return View.from_host(array).address
