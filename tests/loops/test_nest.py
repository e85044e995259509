"""Queries and rewrites of a nest."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.nests import added, loops, nest_of, numbers, product, row_sums, same
from support.compiler.schedules import planned, reduce

from glassgrad import Tensor
from glassgrad.ir.linear import ZERO, add
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import make_range
from glassgrad.loops.nest import (
    axes,
    binders_over,
    find_axis,
    is_idempotent,
    is_reduced,
    next_axis_number,
    reorder,
    substitute_axes,
    substitute_axis,
)
from glassgrad.loops.opts import IllegalMove


def test_axes_come_by_number() -> None:
    assert loops(axes(product(3, 4, 5))) == [0, 1, 2]
    assert next_axis_number(product(3, 4, 5)) == 3


def test_an_axis_is_found_by_its_number_or_not_at_all() -> None:
    nest = added(3, 4)
    assert find_axis(nest, 1).size == 4
    with pytest.raises(IllegalMove, match="there is no axis 5; there are 0, 1"):
        find_axis(nest, 5)


def test_binders_are_those_that_run_over_an_axis() -> None:
    nest = row_sums(3, 4)
    assert [node.op for node in binders_over(nest, find_axis(nest, 0))] == [Ops.STORE]
    assert [node.op for node in binders_over(nest, find_axis(nest, 1))] == [Ops.REDUCE]
    assert is_reduced(nest, find_axis(nest, 1))
    assert not is_reduced(nest, find_axis(nest, 0))


def test_a_loop_is_exchanged_for_two_that_count_the_same() -> None:
    nest = added(3, 8)
    axis = find_axis(nest, 1)
    high, low = make_range(1, 2), make_range(2, 4)
    after = substitute_axis(nest, axis, (high, low), add(high * 4, low))
    assert loops(after.outer) == [0, 1, 2]
    assert axis not in after.body.toposort()
    same(nest, after)


def test_several_loops_are_exchanged_in_one_walk() -> None:
    nest = product(4, 6, 8)
    split = {}
    for number, axis in enumerate(axes(nest)):
        high, low = make_range(axis.axis, axis.size // 2, axis.kind), make_range(10 + number, 2)
        split[axis] = ((high, low), add(high * 2, low))
    after = substitute_axes(nest, split)
    for axis, (ranges, value) in split.items():
        nest = substitute_axis(nest, axis, ranges, value)
    assert after == nest
    same(after, product(4, 6, 8))


def test_a_reduction_over_no_range_is_its_body() -> None:
    nest = nest_of(reduce(numbers(3, 4), Ops.ADD, 1))
    after = substitute_axis(nest, find_axis(nest, 1), (), ZERO)
    assert all(node.op is not Ops.REDUCE for node in after.body.toposort())


def test_reordering_changes_loops_and_not_what_they_mean() -> None:
    nest = added(3, 4)
    first, second = nest.outer
    after = reorder(nest, {first: second, second: first})
    assert after.outer == (second, first)
    (before_store,), (after_store,) = nest.body.src, after.body.src
    assert after_store.src[:2] == before_store.src[:2]
    same(nest, after)


def test_a_step_may_be_done_twice_unless_it_reads_what_the_nest_writes() -> None:
    x, y = Tensor(np.zeros(101, np.float32)), Tensor(np.ones(30, np.float32))
    indices = Tensor(np.arange(30) * 3)
    (kernel,) = planned(x.scatter(0, indices, y)).kernels
    nest = Nest(kernel.body, kernel.outer, kernel.may_alias)
    start, added = nest.body.src
    assert nest.may_alias and is_idempotent(nest, start.bound[0])
    assert not is_idempotent(nest, added.bound[0])
