"""Which values are materialized, and how often readers evaluate them."""

from __future__ import annotations

from random import Random

import numpy as np
from support.compiler.schedules import assign, leaf, memory, planned, reduce
from support.random.graphs import random_graph

from glassgrad.ir.linear import ZERO, add, scale
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.schedule.graph.copies_before_writes import resolve_write_hazards
from glassgrad.schedule.graph.normalize import normalize
from glassgrad.schedule.materialize.policy import (
    choose_materialization,
    evaluations_per_element,
    ignore_pair_order,
    reversed_range,
)
from glassgrad.schedule.materialize.statement import (
    ALWAYS_MATERIALIZED,
    Statement,
    make_axis,
    make_statement,
    sources,
)


def array(*shape: int) -> UOp:
    return leaf(np.zeros(shape))


def expensive(x: UOp) -> UOp:
    return x.alu(Ops.SIN)


def reshape(x: UOp, *shape: int) -> UOp:
    return UOp(Ops.RESHAPE, x.dtype, (x,), shape)


def test_only_results_and_reductions_of_a_chain_are_materialized() -> None:
    x = array(64, 64)
    total = reduce(expensive(x + 1.0), Ops.ADD, 1)
    result = total * 2.0
    assert list(choose_materialization([result])) == [total, result]


def test_only_results_are_stored() -> None:
    total = reduce(array(64, 64), Ops.ADD, 1)
    result = total * 2.0
    statements = choose_materialization([result])
    assert statements[result].is_stored
    assert not statements[total].is_stored


def test_contiguous_and_assign_are_stored_without_readers() -> None:
    x = array(8, 8)
    own = UOp(Ops.CONTIGUOUS, x.dtype, (x + 1.0,))
    written = assign(array(8, 8), own * 2.0)
    statements = choose_materialization([written * 3.0])
    assert statements[own].is_stored
    assert statements[written].is_stored


def test_an_expensive_value_that_is_read_in_two_orders_is_materialized() -> None:
    powers = expensive(array(1024, 1024))
    assert powers in choose_materialization(
        [reduce(powers, Ops.ADD, 0), reduce(powers, Ops.ADD, 1)]
    )


def test_a_cheap_value_that_is_read_in_two_orders_is_not_materialized() -> None:
    more = array(256, 256) + 1.0
    assert more not in choose_materialization([reduce(more, Ops.ADD, 0), reduce(more, Ops.ADD, 1)])


def test_a_value_that_is_used_twice_at_one_index_is_not_materialized() -> None:
    powers = expensive(array(256, 256))
    assert powers not in choose_materialization([powers * powers + powers])


def test_a_value_that_a_contraction_reads_many_times_is_materialized() -> None:
    powers = expensive(array(128, 64))
    product = reshape(powers, 128, 1, 64) * array(96, 64)
    assert powers in choose_materialization([reduce(product, Ops.ADD, 2)])


def test_values_without_elements_have_no_statement() -> None:
    assert choose_materialization([array(0, 4) + 1.0]) == {}


def test_statements_stand_in_topological_order() -> None:
    for seed in range(40):
        roots = resolve_write_hazards(normalize(random_graph(Random(seed), 20)))
        statements = choose_materialization(roots)
        place = {node: number for number, node in enumerate(statements)}
        for statement in statements.values():
            for value in statement.reads:
                if value in place:
                    assert place[value] < place[statement.node]


def test_whatever_is_read_is_in_memory_or_has_a_statement() -> None:
    for seed in range(40):
        roots = resolve_write_hazards(normalize(random_graph(Random(seed), 20)))
        statements = choose_materialization(roots)
        for statement in statements.values():
            assert all(value in statements or value.op is Ops.BUFFER for value in statement.reads)
        for root in roots:
            assert root in statements or root.op is Ops.BUFFER or 0 in root.shape


def test_axes_of_one_element_need_no_range() -> None:
    statement = make_statement(array(4, 1, 3) + 1.0)
    assert statement.axes[1] is ZERO
    assert [axis.size for axis in statement.axes if axis is not ZERO] == [4, 3]
    assert make_axis(5, 1) is ZERO


def test_a_reduction_numbers_its_results_axes_first() -> None:
    statement = make_statement(reduce(array(4, 5, 6, 1), Ops.ADD, 0, 2, 3))
    assert [axis.size for axis in statement.axes] == [5]
    assert [axis.size for axis in statement.reduced] == [4, 6]
    assert [axis.axis for axis in (*statement.axes, *statement.reduced)] == [0, 1, 2]
    assert statement.body_indices[1] is statement.axes[0]
    assert statement.numel == 5
    assert statement.loops == 5 * 4 * 6


def test_a_matrix_product_is_a_contraction_and_a_row_sum_is_none() -> None:
    x, w = array(32, 16), array(24, 16)
    product = reduce(reshape(x, 32, 1, 16) * w, Ops.ADD, 2)
    total = reduce(array(32, 16), Ops.ADD, 1)
    statements = choose_materialization([product, total])
    assert statements[product].is_contraction
    assert not statements[total].is_contraction


def test_values_of_outer_loops_are_computed_once() -> None:
    statement: Statement = make_statement(array(8, 16, 4) + 1.0)
    i, j, k = statement.axes
    assert evaluations_per_element(statement, (i, j, k)) == 1
    assert evaluations_per_element(statement, (i,)) == 1, "the inner loops come later"
    assert evaluations_per_element(statement, (j, k)) == 8
    assert evaluations_per_element(statement, (k,)) == 8 * 16


def test_sources_are_read_where_the_node_says() -> None:
    x, y = array(3, 4), array(4)
    node = x + y
    statement = make_statement(node)
    (_, first), (_, second) = sources(node, statement.axes)
    assert first == statement.axes
    assert second == statement.axes[1:]
    assert list(sources(x, statement.axes)) == []


def test_the_base_of_a_partial_write_is_computed() -> None:
    first = assign(array(4, 4), array(4, 4) * 2.0)
    second = assign(first, array(1, 4), (Ops.SHRINK, ((0, 1), (0, 4))))
    assert list(choose_materialization([second])) == [first, second]


def test_every_materialized_op_has_a_last_source() -> None:
    assert all(op.arity != 0 for op in ALWAYS_MATERIALIZED)


def test_what_is_computed_once_is_stored_only_where_another_kernel_reads_it() -> None:
    once = memory(64, 512).exp()._computed_once()
    made = planned((once + once.flip(1)) * 2)
    assert len(made.kernels) == 1
    assert len(made.buffers[0]) == 2  # no third one for what lies between
    assert len(planned(once).buffers[0]) == 2
    apart = planned((once + once.flip(0)) * 2)  # rows read other rows: no loop is shared
    assert [len(slots) for slots in apart.buffers] == [2, 2]


def test_swapped_elements_are_no_reason_to_materialize_a_value() -> None:
    x = memory(64, 2, 2, 512)
    for axis in (1, 2):
        x = x.minimum(x.flip(axis)) + x.maximum(x.flip(axis))
    assert len(planned(x).kernels) == 1
    assert len(planned(x).buffers[0]) == 2


def test_a_reversed_index_is_recognised() -> None:
    r, two = make_axis(0, 5), make_axis(1, 2)
    assert reversed_range(add(scale(r, -1), 4)) is r
    assert reversed_range(add(scale(r, -1), 3)) is None
    assert reversed_range(r) is None
    turned = add(scale(r, -1), 4)
    assert ignore_pair_order((add(scale(two, -1), 1), turned, r)) == (two, turned, r)


def test_a_large_expression_is_materialized_before_it_is_repeated() -> None:
    x = array(64)
    for number in range(399):  # not too long by itself, but with what follows
        x = (x * (1 + number / 7)) if number % 2 else (x + number / 5)
    outer = reshape(x, 64, 1) * array(1, 96) * 2.0 + 1.0
    total = reduce(outer, Ops.ADD, 0)
    statements = choose_materialization([total])
    assert list(statements) == [x, total]
