"""Which unrolled axes become vectors."""

from __future__ import annotations

from random import Random

import numpy as np
from support.compiler.nests import added, kinds, move, nest_of, numbers, product, row_sums, same
from support.compiler.schedules import TARGET, leaf, reduce
from support.random.graphs import random_graph
from support.random.recipes import RandomChooser

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp
from glassgrad.loops import optimize
from glassgrad.loops.moves.lanes import choose_lanes
from glassgrad.loops.nest import BINDERS
from glassgrad.loops.opts import OptOps
from glassgrad.loops.strategies.heuristic import heuristic
from glassgrad.schedule import schedule

LANE, UPCAST, UNROLL = AxisKind.LANE, AxisKind.UPCAST, AxisKind.UNROLL


def lanes(nest: Nest) -> list[int]:
    return kinds(choose_lanes(nest, TARGET)).get(LANE, [])


def test_a_unit_stride_axis_of_one_vector_becomes_lanes() -> None:
    nest = move(added(4, 16), OptOps.UPCAST, 1, 8)
    assert lanes(nest) == [8]
    same(nest, choose_lanes(nest, TARGET))


def test_several_vectors_stay_registers_around_the_lanes() -> None:
    nest = choose_lanes(move(added(4, 32), OptOps.UPCAST, 1, 32), TARGET)
    assert kinds(nest)[UPCAST] == [4]
    assert kinds(nest)[LANE] == [8]


def test_an_axis_that_strides_through_memory_gets_no_lanes() -> None:
    assert lanes(move(added(16, 4), OptOps.UPCAST, 0, 8)) == []


def test_sums_in_a_row_have_lanes_there_though_a_scale_does_not_change_along_it() -> None:
    codes, scales, x = numbers(64, 4, 32), numbers(64, 4, 1), numbers(4, 32)
    nest = nest_of(reduce(codes * scales * x, Ops.ADD, 1, 2))
    nest = choose_lanes(move(move(nest, OptOps.UNROLL, 2, 8), OptOps.UPCAST, 0, 4), TARGET)
    assert kinds(nest)[LANE] == [8]
    assert kinds(nest)[UPCAST] == [4]


def test_larger_elements_have_fewer_lanes() -> None:
    x = leaf(np.zeros((4, 16)), "float64")
    assert lanes(move(nest_of(x + 1.0), OptOps.UPCAST, 1, 16)) == [4]


def test_a_mixed_expression_has_the_lanes_of_its_largest_element() -> None:
    x = leaf(np.zeros((64,)), "int8")
    assert lanes(move(nest_of(x.cast(dtypes.float64) * 2.0), OptOps.UPCAST, 0, 16)) == [4]


def test_a_short_axis_has_fewer_lanes() -> None:
    assert lanes(move(added(4, 6), OptOps.UPCAST, 1, 6)) == [2]
    assert lanes(move(added(4, 3), OptOps.UPCAST, 1, 3)) == []


def test_a_reduction_along_memory_has_lanes_of_its_own() -> None:
    nest = choose_lanes(move(row_sums(4, 64), OptOps.UNROLL, 1, 32), TARGET)
    assert kinds(nest)[LANE] == [8]
    assert kinds(nest)[UNROLL] == [4]


def test_the_result_of_a_sum_gets_lanes_before_its_steps() -> None:
    nest = nest_of(reduce(numbers(64, 16), Ops.ADD, 0))
    nest = move(move(nest, OptOps.UPCAST, 0, 16), OptOps.UNROLL, 1, 4)
    made = choose_lanes(nest, TARGET)
    assert kinds(made)[UNROLL] == [4]
    assert kinds(made)[LANE] == [8]


def test_a_staged_panel_is_filled_with_vectors() -> None:
    nest = move(move(product(6, 16, 10), OptOps.UPCAST, 1, 8), OptOps.PACK, 1, 2)
    assert lanes(nest) == [8, 8]


def assert_one_lane_axis_per_block(nest: Nest) -> None:
    for node in nest.body.toposort():
        if node.op in BINDERS:
            value = node.src[1] if node.op is Ops.STORE else node.src[0]
            seen = {*node.bound, *value.ranges}
            assert sum(r.kind is LANE for r in seen) <= 1, node


def test_parts_of_a_peeled_reduction_do_not_choose_different_lanes() -> None:
    x = numbers(4, 5)
    windows = UOp(Ops.WINDOW, x.dtype, (x,), (1, 3, 1, 1))
    nest = nest_of(reduce(windows, Ops.ADD, 0, 1, 2))
    for axis in (2, 1):
        nest = move(nest, OptOps.UNROLL, axis, 2)
    made = choose_lanes(nest, TARGET)
    assert_one_lane_axis_per_block(made)
    same(nest, made)


def test_no_block_has_two_lane_axes_under_any_recipe() -> None:
    for seed in range(80):
        for kernel in schedule(random_graph(Random(seed), 15), TARGET).kernels:
            for choose in (heuristic, RandomChooser(seed)):
                assert_one_lane_axis_per_block(optimize(kernel, TARGET, choose))
