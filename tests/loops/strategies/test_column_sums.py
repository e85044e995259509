"""Sums accumulated in memory: a large matrix is streamed once in memory order."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.nests import kernel_of, ops_of, row_sums
from support.compiler.schedules import TARGET, memory

from glassgrad import Tensor
from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest, Target
from glassgrad.loops import optimize
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.column_sums import MAX_RESULTS_PER_PASS, accumulate_columns
from glassgrad.loops.strategies.shared.recipe_builder import RecipeBuilder

MANY_REGISTERS = replace(TARGET, registers=32, vector_bytes=64)


def drafted(tensor: Tensor, target: Target = TARGET) -> RecipeBuilder:
    kernel = kernel_of(tensor)
    return RecipeBuilder(Nest(kernel.body, kernel.outer, kernel.may_alias), target)


def test_sums_of_columns_walk_along_rows_with_vectors() -> None:
    nest = optimize(kernel_of(memory(1024, 2048).sum(0)), TARGET)
    assert OptOps.ACCUMULATE in ops_of(nest)
    stores = [node for node in nest.body.toposort() if node.op is Ops.STORE]
    assert len(stores) == 2, "one clears, one adds"
    for store in stores:
        assert any(r.kind is AxisKind.LANE for r in store.bound), "neither is left scalar"


@pytest.mark.parametrize("rows", [1, MAX_RESULTS_PER_PASS])
@pytest.mark.parametrize(("depth", "together"), [(1024, 8), (1022, 7), (1025, 5)])
def test_a_few_rows_times_a_large_matrix_read_it_once(rows: int, depth: int, together: int) -> None:
    builder = drafted(memory(rows, depth) @ memory(depth, 2048))
    assert accumulate_columns(builder) is not None
    (reduce,) = builder.binders(Ops.REDUCE)
    assert [r.size for r in reduce.bound] == [together]
    assert OptOps.ACCUMULATE in ops_of(builder.nest)


def test_twice_as_many_rows_read_it_twice() -> None:
    builder = drafted(memory(12, 1024) @ memory(1024, 4096))
    assert accumulate_columns(builder) is not None
    assert builder.nest.recipe[0] == Opt(OptOps.UPCAST, 0, 6)


@pytest.mark.parametrize(("rows", "is_loop"), [(2, False), (4, False), (5, True), (8, True)])
def test_rows_whose_factors_fit_no_registers_add_in_a_loop(rows: int, is_loop: bool) -> None:
    builder = drafted(memory(rows, 1024) @ memory(1024, 4096), MANY_REGISTERS)
    loops = accumulate_columns(builder)
    (reduce,) = builder.binders(Ops.REDUCE)
    (steps,) = reduce.bound
    assert loops == ({steps.axis} if is_loop else set())
    assert (steps.kind is AxisKind.REDUCE) is is_loop


def test_stretches_of_columns_are_as_many_for_every_core() -> None:
    target = replace(MANY_REGISTERS, cores=2)
    builder = drafted(memory(8, 768) @ memory(768, 3072), target)
    assert accumulate_columns(builder) is not None
    tiles = [opt.arg for opt in builder.nest.recipe if opt.op is OptOps.TILE]
    assert tiles == [768], "1,024 columns fit the nearest cache, but three stretches are no halves"


def test_an_epilogue_does_not_prevent_accumulation_in_memory() -> None:
    builder = drafted((memory(8, 1024) @ memory(1024, 4096) + memory(4096)).gelu())
    assert accumulate_columns(builder) is not None
    assert len(builder.binders(Ops.STORE)) == 3


@pytest.mark.parametrize("rows", [1, 3, 8, 10, 16])
def test_a_few_rows_times_a_large_matrix_equal_numpy(rows: int) -> None:
    rng = np.random.default_rng(rows)
    x, w, b = [rng.integers(-4, 4, s).astype(np.float32) for s in ((rows, 396), (396, 1000), 1000)]
    ours = (Tensor(x) @ Tensor(w) + Tensor(b)).relu().numpy()
    assert np.array_equal(ours, np.maximum(x @ w + b, 0)), "small integers have exact sums"


@pytest.mark.parametrize(
    ("rows", "depth", "columns"),
    [(MAX_RESULTS_PER_PASS + 1, 1024, 4096), (2, 64, 64), (2, 1023, 4096)],
)
def test_many_rows_small_matrices_and_odd_depths_are_left_to_others(
    rows: int, depth: int, columns: int
) -> None:
    assert accumulate_columns(drafted(memory(rows, depth) @ memory(depth, columns))) is None


def test_sums_of_rows_are_left_alone() -> None:
    builder = RecipeBuilder(row_sums(64, 1024), TARGET)
    assert accumulate_columns(builder) is None
    assert not builder.nest.recipe
