"""When two groups are better as one kernel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.compiler.schedules import TARGET, assign, leaf, memory, reduce, right

from glassgrad import Tensor
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.schedule import schedule
from glassgrad.schedule.fuse import profitability
from glassgrad.tensor.lazy.collect import collect_values

ONE_CORE = replace(TARGET, cores=1)


def kernels(tensor: Tensor, **facts: int) -> int:
    roots, *_ = collect_values([tensor.uop])
    return len(schedule(roots, replace(TARGET, **facts)).kernels)


def test_few_long_rows_are_shared_among_cores_instead_of_kernels() -> None:
    """Four rows in one kernel would leave the other cores idle."""
    rows = memory(4, 20_000).softmax()
    assert kernels(rows, cores=1) == 1
    assert kernels(rows, cores=2) > 1


def test_few_short_rows_are_one_kernel_anyway() -> None:
    assert kernels(memory(4, 100).softmax(), cores=2) == 1


def test_a_row_that_outgrows_the_cache_is_stored() -> None:
    rows = memory(64, 4096).softmax()
    assert kernels(rows, l2_bytes=512 << 10) == 1
    assert kernels(rows, l2_bytes=16 << 10) > 1


def test_a_kernel_takes_no_more_arguments_than_the_machine_has() -> None:
    total = memory(64, 64).sum(1)
    for _ in range(6):
        total = total + memory(64)
    assert kernels(total) == 1
    assert kernels(total, max_params=4) > 1


def test_large_expressions_are_not_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    x = memory(64, 64).sum(1) * 2
    assert kernels(x) == 1
    monkeypatch.setattr(profitability, "MAX_STATEMENTS", 1)
    assert kernels(x) == 2


def test_a_contraction_and_a_row_sum_of_its_result_are_not_fused() -> None:
    product = memory(128, 64) @ memory(64, 96)
    assert kernels(product.sum(1)) == 2
    assert kernels(product.relu()) == 1


def test_a_reader_of_other_elements_is_not_fused_with_the_write() -> None:
    x = leaf(np.ones((64, 64)))
    flipped = UOp(Ops.FLIP, x.dtype, (x,), (0,))
    roots = [reduce(flipped, Ops.ADD, 1), assign(x, x + 1.0)]
    assert len(schedule(roots, ONE_CORE).kernels) == 2


def test_writes_of_one_value_to_other_elements_are_not_fused() -> None:
    """Together, each iteration would overwrite what another one has written already."""
    x = leaf(np.zeros(5))
    total = reduce(leaf(np.arange(25.0).reshape(5, 5)), Ops.ADD, 0)
    turned = assign(assign(x, total), total, (Ops.FLIP, (0,)))
    assert len(right([turned]).kernels) == 2


def test_writes_to_the_same_elements_share_a_kernel() -> None:
    x = leaf(np.zeros(5))
    total = reduce(leaf(np.arange(25.0).reshape(5, 5)), Ops.ADD, 0)
    assert len(right([assign(assign(x, total), total * 2.0)]).kernels) == 1


def test_writes_to_other_parts_of_a_buffer_share_a_kernel() -> None:
    x = leaf(np.zeros(10))
    total = reduce(leaf(np.arange(25.0).reshape(5, 5)), Ops.ADD, 0)
    halves = [(Ops.SHRINK, ((start, start + 5),)) for start in (0, 5)]
    both = assign(assign(x, total, halves[0]), total, halves[1], (Ops.FLIP, (0,)))
    assert len(right([both]).kernels) == 1
