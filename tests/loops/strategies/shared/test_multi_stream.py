"""Sums that read several streams of memory at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.compiler.nests import kernel_of, kinds, ops_of
from support.compiler.schedules import TARGET, memory

from glassgrad import Tensor
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest
from glassgrad.ir.strides import stride
from glassgrad.loops import optimize
from glassgrad.loops.opts import OptOps

ONE_CORE = replace(TARGET, cores=1, l2_bytes=512 << 10)


def distances(nest: Nest) -> set[int | None]:
    """How far apart the runs lie that a nest reads at a time, in elements."""
    loads = [node.src[0] for node in nest.body.toposort() if node.op is Ops.LOAD]
    unrolled = (AxisKind.UPCAST, AxisKind.UNROLL)
    beside = [(i, r) for i in loads for r in i.ranges if r.kind in unrolled and r.size == 4]
    return {stride(index, r) for index, r in beside} - {0}


@pytest.mark.parametrize("columns", [256, 768, 4096, 40_000])
def test_streams_are_64_kb_apart(columns: int) -> None:
    rows = 1 << 24 >> columns.bit_length()
    nest = optimize(kernel_of(memory(rows, columns).sum(1)), ONE_CORE)
    assert kinds(nest)[AxisKind.UPCAST] == [4]
    (distance,) = distances(nest)
    assert distance is not None and distance % columns == 0
    assert 64 << 10 <= distance * 4 < max(128 << 10, columns * 4 + 1)


def test_where_rows_are_few_the_quarters_of_each_are_read_together() -> None:
    nest = optimize(kernel_of(memory(20, 1 << 20).max(1)), replace(ONE_CORE, cores=2))
    assert (1 << 18) in distances(nest)


def test_the_vector_of_a_gemv_is_loaded_once_for_all_rows() -> None:
    nest = optimize(kernel_of(memory(4096, 4096) @ memory(4096)), ONE_CORE)
    assert kinds(nest)[AxisKind.UPCAST] == [4]
    (reduce,) = [node for node in nest.body.toposort() if node.op is Ops.REDUCE]
    assert any(r.kind is AxisKind.LANE for r in reduce.bound), "lanes lie along the sum"


def test_eight_neighbours_are_read_together_from_a_cache() -> None:
    nest = optimize(kernel_of(memory(256, 256) @ memory(256)), ONE_CORE)
    assert kinds(nest)[AxisKind.UPCAST] == [8] and OptOps.TILE not in ops_of(nest)


def test_where_rows_are_few_and_short_neighbours_share_a_vector() -> None:
    nest = optimize(kernel_of(memory(24, 12_000) @ memory(12_000)), replace(ONE_CORE, cores=8))
    assert kinds(nest)[AxisKind.UPCAST] == [8]


def test_every_core_finds_blocks_of_rows() -> None:
    for cores in (2, 8, 64):
        nest = optimize(kernel_of(memory(4096, 768).sum(1)), replace(ONE_CORE, cores=cores))
        assert kinds(nest)[AxisKind.CORE][0] >= 4 * cores


def test_two_operands_have_two_runs_each() -> None:
    product = memory(4096, 4096) * memory(4096, 4096)
    assert kinds(optimize(kernel_of(product.sum(1)), ONE_CORE))[AxisKind.UPCAST] == [2]


def test_rows_that_are_needed_again_are_read_one_by_one() -> None:
    nest = optimize(kernel_of(memory(4096, 4096).softmax()), ONE_CORE)
    assert distances(nest) <= {8, 16, 24, 32}, "vectors of a row only"


@pytest.mark.parametrize("shape", [(1009, 1013), (67, 20_011), (3, 400_009), (1_300_021,)])
def test_odd_sizes_are_summed_completely(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(-8, 8, shape).astype(np.float32)
    assert np.array_equal(Tensor(x).sum(-1).numpy(), x.sum(-1)), "small integers have exact sums"
    assert np.array_equal(Tensor(x).max(-1).numpy(), x.max(-1))
    w = np.random.default_rng(1).integers(-8, 8, shape[-1]).astype(np.float32)
    assert np.array_equal((Tensor(x) @ Tensor(w)).numpy(), x @ w)


def test_rows_with_one_result_are_read_four_at_a_time() -> None:
    for kept in (memory(512, 1000).argmax(1), memory(512, 1000).std(1), memory(512, 64).sum(1)):
        nest = optimize(kernel_of(kept), ONE_CORE)
        assert kinds(nest)[AxisKind.UPCAST] == [4]
        assert set(kinds(nest)[AxisKind.LANE]) == {8}
        assert AxisKind.UNROLL not in kinds(nest), "rows instead of vectors of a row"


def test_every_core_has_some_of_these_rows() -> None:
    kernel = kernel_of(memory(16, 1000).argmax(1))
    assert kinds(optimize(kernel, replace(ONE_CORE, cores=4)))[AxisKind.UPCAST] == [4]
    assert kinds(optimize(kernel, replace(ONE_CORE, cores=8))).get(AxisKind.UPCAST) is None


def test_long_rows_of_which_much_is_computed_are_read_one_by_one() -> None:
    assert kinds(optimize(kernel_of(memory(512, 64).logsumexp(1)), ONE_CORE))[AxisKind.UPCAST]
    nest = optimize(kernel_of(memory(512, 1024).logsumexp(1)), ONE_CORE)
    assert AxisKind.UPCAST not in kinds(nest)


def test_rows_inside_of_a_kernel_are_read_four_at_a_time_too() -> None:
    losses = memory(64, 64).logsumexp(1).square().sum()
    assert 4 in kinds(optimize(kernel_of(losses), ONE_CORE))[AxisKind.UPCAST]


@pytest.mark.parametrize(("rows", "count"), [(1024, 4), (1 << 15, 1)])
def test_neighbours_whose_rows_are_read_twice_go_together_in_a_cache_only(
    rows: int, count: int
) -> None:
    nest = optimize(kernel_of(memory(rows, 512).argmax(1)), TARGET)
    assert kinds(nest).get(AxisKind.UPCAST, [1]) == [count]
