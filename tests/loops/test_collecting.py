"""Sums that are collected in memory: a large matrix goes by once, as it lies."""

from __future__ import annotations

import pytest
from nests import kernel_of, ops_of, row_sums
from schedules import TARGET, memory

from glassgrad import Tensor
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest
from glassgrad.loops import optimize
from glassgrad.loops.collecting import MOST_RESULTS, ROWS, collect_in_memory
from glassgrad.loops.draft import Draft
from glassgrad.loops.opts import OptOps


def drafted(tensor: Tensor) -> Draft:
    kernel = kernel_of(tensor)
    return Draft(Nest(kernel.body, kernel.outer, kernel.rewrites), TARGET)


def test_sums_of_columns_walk_along_rows_with_vectors() -> None:
    nest = optimize(kernel_of(memory(1024, 4096).sum(0)), TARGET)
    assert OptOps.ACCUMULATE in ops_of(nest)
    stores = [node for node in nest.body.toposort() if node.op is Ops.STORE]
    assert len(stores) == 2, "one clears, one adds"
    for store in stores:
        assert any(r.kind is AxisKind.LANE for r in store.bound), "neither is left scalar"


@pytest.mark.parametrize("rows", [1, MOST_RESULTS])
def test_a_few_rows_times_a_large_matrix_read_it_once(rows: int) -> None:
    draft = drafted(memory(rows, 1024) @ memory(1024, 4096))
    assert collect_in_memory(draft)
    (reduce,) = draft.blocks(Ops.REDUCE)
    assert [r.size for r in reduce.bound] == [ROWS]
    assert OptOps.ACCUMULATE in ops_of(draft.nest)


@pytest.mark.parametrize(
    ("rows", "depth", "columns"), [(MOST_RESULTS + 1, 1024, 4096), (2, 64, 64), (2, 1023, 4096)]
)
def test_many_rows_small_matrices_and_odd_depths_are_left_to_others(
    rows: int, depth: int, columns: int
) -> None:
    assert not collect_in_memory(drafted(memory(rows, depth) @ memory(depth, columns)))


def test_sums_of_rows_are_left_alone() -> None:
    draft = Draft(row_sums(64, 1024), TARGET)
    assert not collect_in_memory(draft)
    assert not draft.nest.recipe
