"""Kernels: arguments, ranges, stages and stores."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.compiler.schedules import TARGET, assign, leaf, memory, planned, reduce, right
from support.random.graphs import random_graph

from glassgrad.ir.ops import Ops
from glassgrad.ir.spec import check
from glassgrad.ir.uop import UOp
from glassgrad.schedule import schedule
from glassgrad.schedule.kernels.build import base_buffer, contiguous_strides


@given(shape=st.lists(st.integers(1, 5), max_size=4).map(tuple))
def test_strides_of_new_memory_are_row_major(shape: tuple[int, ...]) -> None:
    array = np.zeros(shape, np.int8)
    assert contiguous_strides(shape) == array.strides


def test_a_write_lies_where_its_buffer_lies() -> None:
    x = leaf(np.zeros(4))
    once = assign(x, x + 1.0)
    assert base_buffer(assign(once, once * 2.0)) is x
    assert base_buffer(x) is x


def test_arguments_are_numbered_from_zero_and_used() -> None:
    for seed in range(60):
        made = schedule(random_graph(Random(seed), 20), TARGET)
        for kernel, slots in zip(made.kernels, made.buffers, strict=True):
            params = {n.arg.slot: n for n in kernel.body.toposort() if n.op is Ops.PARAM}
            assert sorted(params) == list(range(len(slots)))
            for slot, node in enumerate(slots):
                assert params[slot].arg.shape == node.shape
                assert params[slot].dtype is node.dtype


def test_ranges_are_numbered_within_the_kernel_outer_ones_first() -> None:
    for seed in range(60):
        for kernel in schedule(random_graph(Random(seed), 20), TARGET).kernels:
            numbers = [n.axis for n in kernel.body.toposort() if n.op is Ops.RANGE]
            assert len(numbers) == len(set(numbers))
            assert [r.axis for r in kernel.outer] == list(range(len(kernel.outer)))


def test_every_kernel_is_legal() -> None:
    for seed in range(60):
        for kernel in schedule(random_graph(Random(seed), 20), TARGET).kernels:
            check(kernel.body, "kernel")


def test_a_kernel_says_whether_it_reads_what_it_writes() -> None:
    x, y = leaf(np.ones((4, 4))), leaf(np.ones((4, 4)))
    assert [k.may_alias for k in schedule([assign(x, x + y)], TARGET).kernels] == [True]
    assert [k.may_alias for k in schedule([x + y], TARGET).kernels] == [False]


def test_a_row_that_is_read_twice_is_staged_and_not_stored() -> None:
    made = planned(memory(512, 1024).softmax())
    (kernel,) = made.kernels
    stages = [node for node in kernel.body.toposort() if node.op is Ops.STAGE]
    assert all(node.arg == (1024,) for node in stages)
    assert len(kernel.body.src) == 1


def test_a_value_without_axes_of_its_own_is_a_register() -> None:
    x = leaf(np.ones((64, 64)))
    total = UOp(Ops.RESHAPE, x.dtype, (reduce(x, Ops.ADD, 1),), (64, 1))
    (kernel,) = right([x * total]).kernels
    assert not any(node.op is Ops.STAGE for node in kernel.body.toposort())


def test_reductions_that_do_not_wait_for_each_other_share_their_ranges() -> None:
    x = leaf(np.ones((64, 512)))
    (kernel,) = schedule([reduce(x, Ops.ADD, 1), reduce(x * x, Ops.ADD, 1)], TARGET).kernels
    reduces = [node for node in kernel.body.toposort() if node.op is Ops.REDUCE]
    assert len(reduces) == 2
    assert reduces[0].bound == reduces[1].bound


def test_a_reduction_that_waits_for_another_has_ranges_of_its_own() -> None:
    x = leaf(np.ones((64, 512)))
    top = UOp(Ops.RESHAPE, x.dtype, (reduce(x, Ops.MAX, 1),), (64, 1))
    (kernel,) = right([reduce(x - top, Ops.ADD, 1)]).kernels
    reduces = [node for node in kernel.body.toposort() if node.op is Ops.REDUCE]
    assert len({node.bound for node in reduces}) == 2


def test_memory_in_another_order_is_read_by_its_strides() -> None:
    x = leaf(np.asfortranarray(np.arange(12.0).reshape(3, 4)))
    kernel = right([x + 1.0]).kernels[0]
    params = [n.arg for n in kernel.body.toposort() if n.op is Ops.PARAM and n.arg.slot == 1]
    assert params[0].strides == (1, 3)
