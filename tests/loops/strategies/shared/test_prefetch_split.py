"""Which sums are strip-mined for prefetches of their epilogue."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.nests import GPU, kernel_of
from support.compiler.programs import TARGET
from support.compiler.schedules import memory

from glassgrad import Tensor
from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest, Target
from glassgrad.loops import optimize

MANY_REGISTERS = replace(TARGET, registers=32, vector_bytes=64, l2_bytes=1 << 20)


def steps_of(tensor: Tensor, target: Target = MANY_REGISTERS) -> list[int]:
    """The loops of the only sum, from the outside."""
    return steps_in(optimize(kernel_of(tensor), target))


def steps_in(nest: Nest) -> list[int]:
    (reduce,) = [node for node in nest.body.toposort() if node.op is Ops.REDUCE]
    return [r.size for r in reduce.bound if r.kind is AxisKind.REDUCE]


def test_a_prefetch_block_for_every_row_of_a_tile() -> None:
    assert steps_of(memory(2048, 384) @ memory(384, 1536)) == [8, 48]


def test_prefetches_are_split_where_results_are_written_in_a_loop() -> None:
    assert steps_of((memory(2048, 384) @ memory(384, 1536)).gelu()) == [8, 48]


def test_the_number_of_prefetch_blocks_divides_the_sum() -> None:
    assert steps_of(memory(2048, 388) @ memory(388, 1536)) == [4, 97]
    assert steps_of(memory(2048, 387) @ memory(387, 1536)) == [387]


def test_few_cache_lines_are_prefetched_at_once() -> None:
    product = memory(2048, 384) @ memory(384, 1536)
    assert steps_of(product, TARGET) == [384], "six rows of one line"
    assert steps_of(product * memory(2048, 1536) + memory(2048, 1536), TARGET) == [6, 64]


@pytest.mark.parametrize("shape", [(96, 384, 96), (2048, 64, 1536)])
def test_cached_operands_and_short_sums_are_not_split(shape: tuple[int, int, int]) -> None:
    rows, depth, columns = shape
    assert steps_of(memory(rows, depth) @ memory(depth, columns)) == [depth]


def test_sums_in_scratch_and_gpus_need_no_prefetch_split() -> None:
    parts = memory(2048, 384).transpose() @ memory(2048, 384)
    assert steps_of(parts) == [256]
    assert 384 in steps_of(memory(2048, 384) @ memory(384, 1536), GPU)


@pytest.mark.parametrize("depth", [384, 388, 387])
def test_values_are_those_of_numpy(depth: int) -> None:
    rng = np.random.default_rng(depth)
    x = rng.integers(-4, 5, (900, depth)).astype(np.float32)
    w = rng.integers(-4, 5, (depth, 800)).astype(np.float32)
    y = rng.integers(-4, 5, (900, 800)).astype(np.float32)
    found = (Tensor(x) @ Tensor(w)) * Tensor(y) + Tensor(y)
    np.testing.assert_array_equal(found.numpy(), (x @ w) * y + y)
