"""Buffers that are not proved to be written completely are zero-filled first."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.schedules import TARGET, leaf, planned, reduce
from support.references.kernel import run_schedule

from glassgrad import Tensor
from glassgrad.base.config import Context
from glassgrad.base.counters import GlobalCounters
from glassgrad.base.dtype import dtypes
from glassgrad.base.fast_dataclasses import replace
from glassgrad.engine.cache import graph_keys as cache
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Kernel, Schedule
from glassgrad.ir.uop import UOp, make_range
from glassgrad.schedule import schedule
from glassgrad.schedule.kernels import zeroing
from glassgrad.schedule.kernels.zeroing import zero_uncovered


def half_done(kernel: Kernel) -> Kernel:
    """The same, but its outermost loop stops in the middle."""
    loop = kernel.outer[0]
    short = make_range(loop.axis, loop.size // 2)
    body = kernel.body.substitute({loop: short})
    return replace(kernel, body=body, outer=(short, *kernel.outer[1:]))


def planted() -> Schedule:
    made = schedule([leaf(np.ones((8, 5))) + 1.0], TARGET)
    return replace(made, kernels=tuple([half_done(kernel) for kernel in made.kernels]))


def test_zeros_are_written_before_a_kernel_that_leaves_something_out() -> None:
    GlobalCounters.reset()
    made = zero_uncovered(planted())
    assert len(made.kernels) == len(made.buffers) == len(made.stored) == 2
    assert GlobalCounters.uncovered_count == 1
    (found,) = run_schedule(made)
    assert found[:4].tolist() == [[2.0] * 5] * 4
    assert found[4:].tolist() == [[0.0] * 5] * 4


def test_kernels_that_write_everything_stay_as_they_are() -> None:
    made = schedule([reduce(leaf(np.ones((8, 5))), Ops.ADD, 1)], TARGET)
    assert zero_uncovered(made) is made


def test_a_write_to_a_part_of_a_tensor_leaves_the_rest() -> None:
    x = Tensor([1.0, 2.0, 3.0, 4.0]).realize()
    x[1:3] = 9.0
    assert len(planned(x).kernels) == 1
    assert x.tolist() == [1.0, 9.0, 9.0, 4.0]


def test_unwritten_elements_read_as_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = zeroing.zero_uncovered

    def with_a_mistake(made: Schedule) -> Schedule:
        return inner(replace(made, kernels=tuple([half_done(k) for k in made.kernels])))

    monkeypatch.setattr("glassgrad.schedule.pass_functions.zero_uncovered", with_a_mistake)
    x = Tensor(np.ones((8, 6), np.float32)).realize()
    cache.clear()
    with Context(CACHELEVEL=0):
        found = (x + 41).numpy()
    cache.clear()
    assert found[:4].tolist() == [[42.0] * 6] * 4
    assert found[4:].tolist() == [[0.0] * 6] * 4


def test_scalars_and_axes_of_one_are_zeroed_too() -> None:
    x = UOp(Ops.PARAM, dtypes.float32, (), planted().kernels[0].body.src[0].buffer.arg)
    lone = replace(x.arg, shape=(1, 1, 3), strides=(3, 3, 1))
    made = zeroing._zero_kernel(x.replace(arg=lone))
    assert [r.size for r in made.outer] == [3]
