"""What a chooser asks of the nest that it shapes."""

from __future__ import annotations

import numpy as np
from support.compiler.nests import blocks, nest_of, numbers, product, row_sums
from support.compiler.schedules import TARGET, leaf, reduce

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.recipe_builder import Draft


def test_a_legal_attempt_moves_and_an_illegal_one_does_not() -> None:
    draft = Draft(row_sums(4, 6), TARGET)
    before = draft.nest
    assert not draft.attempt(Opt(OptOps.UNROLL, 0, 2))
    assert draft.nest is before
    assert draft.attempt(Opt(OptOps.UNROLL, 1, 2))
    assert draft.nest.recipe == (Opt(OptOps.UNROLL, 1, 2),)


def test_of_several_attempts_the_legal_ones_are_made() -> None:
    draft = Draft(row_sums(4, 6), TARGET)
    rows, columns = Opt(OptOps.UPCAST, 0, 4), Opt(OptOps.UPCAST, 1, 6)
    draft.attempt_all([columns, rows])
    assert draft.nest.recipe == (rows,)


def test_lanes_are_those_of_the_largest_element() -> None:
    for dtype, count in (("float32", 8), ("float64", 4), ("int8", 32)):
        draft = Draft(nest_of(leaf(np.ones(64), dtype).alu(Ops.NEG)), TARGET)
        (store,) = draft.blocks(Ops.STORE)
        assert draft.lanes(store) == count


def test_a_load_belongs_to_the_innermost_block_around_it() -> None:
    nest = row_sums(4, 6)
    draft = Draft(nest, TARGET)
    assert len(draft.loads(blocks(nest, Ops.REDUCE)[0])) == 1
    assert draft.loads(blocks(nest, Ops.STORE)[0]) == []


def test_the_more_a_sum_computes_the_fewer_vectors_at_once() -> None:
    x = numbers(4, 64)
    plain, powers, waves = x + 1.0, x.alu(Ops.EXP2).alu(Ops.LOG2), x.alu(Ops.SIN)
    found = []
    for value in (plain, powers, waves):
        draft = Draft(nest_of(reduce(value, Ops.ADD, 1)), TARGET)
        found.append(draft.vectors(draft.blocks(Ops.REDUCE)[0]))
    assert found == [4, 2, 1]


def test_of_what_is_written_more_is_computed_at_once() -> None:
    x = numbers(64)
    found = []
    for value in (x + 1.0, x.alu(Ops.EXP2).alu(Ops.LOG2), x.alu(Ops.SIN).alu(Ops.LOG2)):
        draft = Draft(nest_of(value), TARGET)
        (store,) = draft.blocks(Ops.STORE)
        found.append((draft.vectors(store), draft.is_light(store)))
    assert found == [(4, True), (4, False), (1, False)]


def test_steps_count_every_loop() -> None:
    assert Draft(nest_of(numbers(64) + 1.0), TARGET).steps() == 64
    assert Draft(product(4, 5, 6), TARGET).steps() == 4 * 5 * 6 + 4 * 5


def test_index_arithmetic_does_not_count_as_an_element() -> None:
    x = leaf(np.ones((8, 8)), "int8")
    draft = Draft(nest_of(x.cast(dtypes.int16)), TARGET)
    assert draft.lanes(draft.blocks(Ops.STORE)[0]) == 16
