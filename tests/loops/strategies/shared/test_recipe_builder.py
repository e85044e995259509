"""The queries that strategies share."""

from __future__ import annotations

import numpy as np
from support.compiler.nests import binders, nest_of, numbers, product, row_sums
from support.compiler.schedules import TARGET, leaf, reduce

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.shared.recipe_builder import RecipeBuilder


def test_a_legal_attempt_moves_and_an_illegal_one_does_not() -> None:
    builder = RecipeBuilder(row_sums(4, 6), TARGET)
    before = builder.nest
    assert not builder.try_move(Opt(OptOps.UNROLL, 0, 2))
    assert builder.nest is before
    assert builder.try_move(Opt(OptOps.UNROLL, 1, 2))
    assert builder.nest.recipe == (Opt(OptOps.UNROLL, 1, 2),)


def test_legal_attempts_are_applied_and_others_skipped() -> None:
    builder = RecipeBuilder(row_sums(4, 6), TARGET)
    rows, columns = Opt(OptOps.UPCAST, 0, 4), Opt(OptOps.UPCAST, 1, 6)
    builder.try_each([columns, rows])
    assert builder.nest.recipe == (rows,)


def test_lanes_are_those_of_the_largest_element() -> None:
    for dtype, count in (("float32", 8), ("float64", 4), ("int8", 32)):
        builder = RecipeBuilder(nest_of(leaf(np.ones(64), dtype).alu(Ops.NEG)), TARGET)
        (store,) = builder.binders(Ops.STORE)
        assert builder.lanes(store) == count


def test_a_load_belongs_to_the_innermost_block_around_it() -> None:
    nest = row_sums(4, 6)
    builder = RecipeBuilder(nest, TARGET)
    assert len(builder.loads(binders(nest, Ops.REDUCE)[0])) == 1
    assert builder.loads(binders(nest, Ops.STORE)[0]) == []


def test_the_more_a_sum_computes_the_fewer_vectors_at_once() -> None:
    x = numbers(4, 64)
    plain, powers, waves = x + 1.0, x.alu(Ops.EXP2).alu(Ops.LOG2), x.alu(Ops.SIN)
    found = []
    for value in (plain, powers, waves):
        builder = RecipeBuilder(nest_of(reduce(value, Ops.ADD, 1)), TARGET)
        found.append(builder.vectors(builder.binders(Ops.REDUCE)[0]))
    assert found == [4, 2, 1]


def test_the_number_of_vectors_of_a_store_depends_on_its_cost() -> None:
    x = numbers(64)
    found = []
    for value in (x + 1.0, x.alu(Ops.EXP2).alu(Ops.LOG2), x.alu(Ops.SIN).alu(Ops.LOG2)):
        builder = RecipeBuilder(nest_of(value), TARGET)
        (store,) = builder.binders(Ops.STORE)
        found.append((builder.vectors(store), builder.is_memory_bound(store)))
    assert found == [(4, True), (4, False), (1, False)]


def test_steps_count_every_loop() -> None:
    assert RecipeBuilder(nest_of(numbers(64) + 1.0), TARGET).inner_iterations() == 64
    assert RecipeBuilder(product(4, 5, 6), TARGET).inner_iterations() == 4 * 5 * 6 + 4 * 5


def test_index_arithmetic_does_not_count_as_an_element() -> None:
    x = leaf(np.ones((8, 8)), "int8")
    builder = RecipeBuilder(nest_of(x.cast(dtypes.int16)), TARGET)
    assert builder.lanes(builder.binders(Ops.STORE)[0]) == 16
