"""The cost of recomputing a value against keeping it."""

from __future__ import annotations

import numpy as np
from support.compiler.schedules import leaf

from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.uop import UOp
from glassgrad.schedule.materialize.cost import OP_NS, Cost, Costs, is_worth_materializing

BIG = leaf(np.zeros((512, 512), np.float32))
ROW = leaf(np.zeros((1, 512), np.float32))


def test_every_elementwise_op_has_a_cost() -> None:
    assert set(OpGroup.ELEMENTWISE) <= set(OP_NS)
    assert OP_NS[Ops.SIN] > OP_NS[Ops.SQRT] > OP_NS[Ops.ADD] > OP_NS[Ops.CMPLT]


def test_an_expensive_value_is_materialized_from_its_second_evaluation_on() -> None:
    assert is_worth_materializing(BIG, Cost(0.8, 4.0, 1.0, 1.0, 4.0), 2.0, 2)


def test_a_cheap_value_is_computed_again() -> None:
    assert not is_worth_materializing(BIG, Cost(0.15, 4.0, 1.0, 1.0, 4.0), 2.0, 2)


def test_adjacent_readers_read_from_the_cache() -> None:
    assert is_worth_materializing(BIG, Cost(0.15, 4.0, 1.0, 1.0, 4.0), 2.0, 2, is_cached=True)


def test_a_value_that_is_not_dearer_than_a_load_is_computed_any_number_of_times() -> None:
    assert not is_worth_materializing(BIG, Cost(0.03, 0.0, 2.0, 0.0, 0.0), 1000.0, 1)
    assert is_worth_materializing(BIG, Cost(0.03, 4.0, 2.0, 1.0, 4.0), 1000.0, 1)


def test_a_sum_of_many_buffers_with_two_readers_is_materialized() -> None:
    assert is_worth_materializing(BIG, Cost(0.1, 24.0, 5.0, 6.0, 4.0), 2.0, 2)


def test_a_small_value_is_not_worth_a_kernel() -> None:
    small = leaf(np.zeros((4, 4)))
    assert not is_worth_materializing(small, Cost(0.8, 4.0, 1.0, 1.0, 4.0), 2.0, 2)


def cost_of(node: UOp, *statements: UOp) -> Cost:
    costs = Costs({BIG, ROW, *statements})
    for found in node.toposort():
        if found.op in (Ops.CONST, Ops.BUFFER):
            costs.add_leaf(found)
        else:
            costs.add(found)
    return costs.of[node]


def test_costs_add_up_along_a_chain_that_is_not_materialized() -> None:
    one = BIG + 1.0
    two = one.alu(Ops.SQRT)
    assert cost_of(two) == Cost(OP_NS[Ops.ADD] + OP_NS[Ops.SQRT], 4.0, 2.0, 1.0, 4.0)
    assert cost_of(two, one) == Cost(OP_NS[Ops.SQRT], 4.0, 1.0, 1.0, 4.0)


def test_shared_operands_are_counted_once() -> None:
    x = BIG + 1.0
    for _ in range(50):
        x = x * x
    assert cost_of(x).ops == 51
    assert cost_of(x).bytes == 4


def test_moved_elements_are_counted_separately() -> None:
    x = BIG.alu(Ops.SQRT)
    turned = UOp(Ops.PERMUTE, x.dtype, (x,), (1, 0))
    assert cost_of(x + turned).ops == 3
    assert cost_of(x + turned).loads == 2


def test_bytes_of_a_repeated_row_come_from_the_cache() -> None:
    wide = UOp(Ops.EXPAND, ROW.dtype, (ROW.alu(Ops.SIN),), BIG.shape)
    assert cost_of(BIG + wide).bytes == 4 + 4 / 512
    assert cost_of(BIG + ROW).bytes == 4 + 4 / 512
