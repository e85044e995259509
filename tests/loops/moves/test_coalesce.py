"""COALESCE: loops whose indices have a common stride become one."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from support.compiler.nests import (
    added,
    kinds,
    move,
    nest_of,
    numbers,
    product,
    refused,
    row_sums,
    same,
)
from support.compiler.schedules import TARGET, assign, leaf, reduce
from support.random.graphs import random_graph

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp
from glassgrad.loops.moves.coalesce import coalesce_loops
from glassgrad.loops.nest import axes
from glassgrad.loops.opts import OptOps
from glassgrad.schedule import schedule

LOOP, REDUCE = AxisKind.LOOP, AxisKind.REDUCE


def merged(nest: Nest) -> dict[AxisKind, list[int]]:
    after = coalesce_loops(nest)
    same(nest, after)
    return kinds(after)


def test_a_copy_of_a_matrix_is_one_loop() -> None:
    assert merged(nest_of(numbers(4, 4) + 1.0)) == {LOOP: [16]}
    assert merged(nest_of(numbers(2, 3, 4, 5) * numbers(2, 3, 4, 5))) == {LOOP: [120]}


def test_a_transpose_keeps_its_two_loops() -> None:
    assert merged(added(4, 6)) == {LOOP: [4, 6]}


def test_a_broadcast_axis_is_not_coalesced() -> None:
    assert merged(nest_of(numbers(4, 6) + numbers(6))) == {LOOP: [4, 6]}
    assert merged(nest_of(numbers(3, 4, 6) + numbers(4, 6))) == {LOOP: [3, 24]}


def test_reduced_axes_merge_among_themselves() -> None:
    assert merged(nest_of(reduce(numbers(3, 4, 5), Ops.ADD, 1, 2))) == {LOOP: [3], REDUCE: [20]}
    assert merged(nest_of(reduce(numbers(3, 4, 5), Ops.ADD, 0, 1, 2))) == {REDUCE: [60]}


def test_a_result_axis_never_merges_with_a_reduced_one() -> None:
    assert merged(row_sums(4, 6)) == {LOOP: [4], REDUCE: [6]}


def test_a_matrix_product_keeps_its_three_loops() -> None:
    assert merged(product(4, 5, 6)) == {LOOP: [4, 5], REDUCE: [6]}


def test_an_axis_that_is_used_as_a_number_stays() -> None:
    line = UOp(Ops.IOTA, dtypes.float32, (), 6)
    assert merged(nest_of(numbers(4, 6) + line)) == {LOOP: [4, 6]}


def test_a_padded_axis_is_not_coalesced() -> None:
    x = numbers(4, 6)
    padded = UOp(Ops.PAD, x.dtype, (x,), ((0, 0), (1, 0)))
    assert merged(nest_of(padded + 1.0)) == {LOOP: [4, 7]}


def test_memory_with_gaps_keeps_its_loops() -> None:
    x = leaf(np.asfortranarray(np.ones((4, 6))))
    assert merged(nest_of(x + 1.0)) == {LOOP: [4, 6]}


def test_an_update_in_place_is_one_loop() -> None:
    x = numbers(4, 6)
    assert merged(nest_of(assign(x, x * 2.0))) == {LOOP: [24]}


@pytest.mark.parametrize("batch", range(2))
def test_merging_never_changes_what_a_kernel_computes(batch: int) -> None:
    for seed in range(batch * 40, batch * 40 + 40):
        for kernel in schedule(random_graph(Random(seed), 12), TARGET).kernels:
            nest = Nest(kernel.body, kernel.outer, kernel.may_alias)
            after = coalesce_loops(nest)
            assert len(after.outer) <= len(nest.outer)
            same_or_nan(nest, after)


def same_or_nan(one: Nest, two: Nest) -> None:
    """Random arguments may divide by zero: then both do."""
    with np.errstate(all="ignore"):
        same(one, two)


def test_the_move_coalesces_two_loops() -> None:
    before = added(4, 6)
    after = move(before, OptOps.COALESCE, 0, 1)
    assert kinds(after) == {LOOP: [24]}
    same(before, after)


def test_a_tile_of_a_coalesced_axis_continues_in_the_next_row() -> None:
    before = added(4, 6)
    after = move(move(before, OptOps.COALESCE, 0, 1), OptOps.UPCAST, 0, 5)
    assert kinds(after) == {LOOP: [5], AxisKind.UPCAST: [5]}
    same(before, after)


def test_reduction_loops_are_coalesced_too() -> None:
    before = nest_of(reduce(numbers(3, 4, 5), Ops.ADD, 0, 2))
    first, second = [axis.axis for axis in axes(before) if axis.kind is REDUCE]
    after = move(before, OptOps.COALESCE, first, second)
    assert kinds(after) == {LOOP: [4], REDUCE: [15]}
    same(before, after)


def test_loops_that_are_not_adjacent_are_refused() -> None:
    assert "plain" in refused(added(4, 6), OptOps.COALESCE, 0, 0)
    assert "plain" in refused(row_sums(4, 6), OptOps.COALESCE, 0, 1)
    assert "plain" in refused(move(added(4, 6), OptOps.UPCAST, 1, 6), OptOps.COALESCE, 0, 2)
    assert "not adjacent" in refused(added(4, 6), OptOps.COALESCE, 1, 0)
