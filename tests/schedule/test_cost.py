"""Recomputing against keeping."""

from __future__ import annotations

import numpy as np
from schedules import leaf

from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.schedule.cost import (
    NOTHING,
    OP_NS,
    Cost,
    elements_cost,
    read_cost,
    worth_keeping,
)

BIG = leaf(np.zeros((512, 512)))


def test_every_elementwise_op_has_a_price() -> None:
    assert set(OpGroup.ELEMENTWISE) <= set(OP_NS)
    assert OP_NS[Ops.SIN] > OP_NS[Ops.SQRT] > OP_NS[Ops.ADD] > OP_NS[Ops.CMPLT]


def test_a_value_that_is_evaluated_once_is_never_kept() -> None:
    assert not worth_keeping(BIG, Cost(100.0, 100.0, 50.0), 1.0)


def test_an_expensive_value_is_kept_from_its_second_evaluation_on() -> None:
    assert worth_keeping(BIG, Cost(0.8, 4.0, 1.0), 2.0)


def test_a_cheap_value_is_computed_again() -> None:
    assert not worth_keeping(BIG, Cost(0.04, 4.0, 1.0), 2.0)
    assert not worth_keeping(BIG, Cost(0.01, 0.0, 1.0), 100.0)


def test_a_small_value_is_not_worth_a_kernel() -> None:
    small = leaf(np.zeros((4, 4)))
    assert not worth_keeping(small, Cost(0.8, 4.0, 1.0), 2.0)


def test_a_small_value_is_read_again_from_the_cache() -> None:
    row = leaf(np.zeros(512))
    assert read_cost(row, BIG).bytes == 4 / 512
    assert read_cost(BIG, BIG).bytes == 4
    assert read_cost(BIG, row).bytes == 4


def test_costs_add_up_along_a_chain_that_is_not_kept() -> None:
    one = BIG + 1.0
    two = one.alu(Ops.SIN)
    costs = dict.fromkeys(two.toposort(), NOTHING)
    costs[one] = elements_cost(one, costs, {BIG: None})
    inlined = elements_cost(two, costs, {BIG: None})
    kept = elements_cost(two, costs, {BIG: None, one: None})
    assert inlined == Cost(OP_NS[Ops.ADD] + OP_NS[Ops.SIN], 4.0, 2.0)
    assert kept == Cost(OP_NS[Ops.SIN], 4.0, 1.0)
    assert kept.total < inlined.total
