"""Indices are checked where they are computed, and reported where the target supports it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from glassgrad import Tensor
from glassgrad.base.errors import AxisError
from glassgrad.devices.python.device import python_target
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import ERROR_CELLS, Program, Target
from glassgrad.loops import optimize
from glassgrad.lower import lower
from glassgrad.schedule import schedule


def program(value: Tensor, target: Target) -> Program:
    made = schedule([value.uop], target)
    (kernel,) = made.kernels
    assert ERROR_CELLS in made.buffers[0]
    return lower(optimize(kernel, target), target)


def rows(columns: int = 40) -> Tensor:
    table = Tensor(np.zeros((100, columns), np.float32))
    return table[Tensor(np.zeros(7, np.int32)) + 0]


def test_an_index_is_checked_outside_of_the_loop_over_its_row() -> None:
    lines = [uop.op for uop in program(rows(), python_target()).uops]
    assert lines.count(Ops.IF) == lines.count(Ops.ENDIF) == 1
    assert lines[: lines.index(Ops.IF)].count(Ops.RANGE) == 1
    assert lines[lines.index(Ops.IF) :].count(Ops.RANGE) == 1


def test_a_checked_load_has_no_gate() -> None:
    uops = program(rows(), python_target()).uops
    assert all(uop.gate is None for uop in uops if uop.op is Ops.INDEX)


def test_targets_without_reports_only_make_indices_harmless() -> None:
    quiet = replace(python_target(), reports_indices=False)
    uops = program(rows(), quiet).uops
    assert all(uop.op is not Ops.IF for uop in uops)
    assert sum(uop.op is Ops.PARAM for uop in uops) == 3


def test_every_lane_of_a_vector_of_indices_is_checked() -> None:
    table = Tensor([5.0, 6.0, 7.0])
    for place in range(16):
        indices = np.zeros(16, np.int32)
        indices[place] = 3
        lookup = table.gather(0, Tensor(indices) + 0)
        with pytest.raises(AxisError, match="index 3 is out of range"):
            (lookup + Tensor(np.ones(16, np.float32))).realize()


def test_the_lanes_of_a_vector_are_checked_once() -> None:
    indices = Tensor(np.zeros((4, 64), np.int64)).realize()
    lookup = Tensor(np.zeros((4, 9), np.float32)).realize().gather(1, indices)
    uops = program(lookup, Target("CPU", "llvm", reports_indices=True)).uops
    checks = [uop for uop in uops if uop.op is Ops.CMPLT and uop.dtype.count == 4]
    assert checks and sum(uop.op is Ops.IF for uop in uops) == len(checks)
