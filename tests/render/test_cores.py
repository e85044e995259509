"""A job over several loops: each call runs the steps from begin to end, and no others."""

from __future__ import annotations

import ctypes
import shutil
from math import prod

import numpy as np
import pytest
from support.compiler.hand_programs import I64, Lines, address, integer, load
from support.compiler.on_cpu import cpu

from glassgrad.devices.clang.device import COMPILERS, ClangDevice
from glassgrad.ir.ops import AxisKind
from glassgrad.ir.stages import Program
from glassgrad.ir.uop import UOp
from glassgrad.render import render
from glassgrad.render.cores import steps_per_iteration

CORE = AxisKind.CORE
has_compiler = any(shutil.which(name) for name in COMPILERS)
needs_compiler = pytest.mark.skipif(not has_compiler, reason="no C compiler is installed")


def counting(*sizes: int) -> Program:
    """out[step] += 1 for every step of a job over several loops; entered[outer] += 1."""
    lines = Lines()
    out, entered = lines.param(0, I64), lines.param(1, I64)
    loops: list[UOp] = []
    place = integer(0)
    for number, size in enumerate(sizes):
        loops.append(lines.loop(number, size, CORE))
        place = lines.add(place * integer(size) + loops[-1])
        if number == 0:
            again = load(entered.index(place)) + integer(1)
            lines.store(entered.index(place), again)
    lines.store(out.index(place), load(out.index(place)) + integer(1))
    for loop in reversed(loops):
        lines.end(loop)
    return lines.program(cores=prod(sizes))


def check_all_runs(function: object, sizes: tuple[int, ...]) -> None:
    steps = prod(sizes)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
        function  # type: ignore[arg-type]
    )
    for begin in range(steps + 1):
        for end in range(begin, steps + 1):
            out, entered = np.zeros(steps, np.int64), np.zeros(sizes[0], np.int64)
            pointers = (ctypes.c_void_p * 2)(address(out), address(entered))
            run(ctypes.addressof(pointers), None, begin, end)
            assert out.tolist() == [int(begin <= i < end) for i in range(steps)]
            inside = steps // sizes[0]
            met = {i // inside for i in range(begin, end)}
            if begin < end:
                assert set(np.flatnonzero(entered).tolist()) == met and entered.max() == 1


@pytest.mark.parametrize("sizes", [(6,), (3, 4), (4, 1), (1, 5), (2, 3, 2)])
def test_every_step_of_a_job_runs_once(sizes: tuple[int, ...]) -> None:
    executable = cpu().compile(render(counting(*sizes), cpu().target))
    check_all_runs(executable.address, sizes)


@needs_compiler
@pytest.mark.parametrize("sizes", [(6,), (3, 4), (2, 3, 2)])
def test_every_step_of_a_job_runs_once_in_c(sizes: tuple[int, ...]) -> None:
    device = ClangDevice()
    executable = device.compile(render(counting(*sizes), device.target))
    check_all_runs(executable.address, sizes)


def test_the_steps_of_an_iteration_are_those_of_the_inner_loops() -> None:
    found = steps_per_iteration(counting(2, 3, 5).uops)
    assert [(loop.size, steps) for loop, steps in found.items()] == [(2, 15), (3, 5), (5, 1)]
