"""Reindexing: other indices in an expression, with the same meaning and in canonical form."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from support.compiler.index_expressions import RANGES, everywhere, expressions, memory, value_of

from glassgrad.base.dtype import dtypes
from glassgrad.ir.divmod import less, within
from glassgrad.ir.linear import add, build, linear, scale
from glassgrad.ir.reindex import reindex
from glassgrad.ir.uop import UOp, const, make_range

ROWS, COLUMNS = make_range(7, 2), make_range(8, 3)


@settings(max_examples=150)
@given(expressions(), expressions(), st.integers(-3, 9))
def test_values_are_those_at_the_new_indices(value: UOp, place: UOp, limit: int) -> None:
    axis = RANGES[0]
    for node in (value, less(value, limit)):
        moved = reindex(node, {axis: place})
        for at in everywhere():
            there = {**at, axis: value_of(place, at)}
            assert value_of(moved, at) == value_of(node, there)


@given(expressions())
def test_a_reindexed_sum_is_in_canonical_form(value: UOp) -> None:
    moved = reindex(value, {RANGES[1]: add(scale(ROWS, 3), COLUMNS)})
    assert moved is build(linear(moved))


def test_gates_that_always_hold_vanish() -> None:
    axis = RANGES[3]
    index = memory(5).index(axis, gate=within(add(axis, 0), 0, 3)[0])
    assert index.gate is not None
    moved = reindex(index, {axis: COLUMNS})
    assert moved.gate is None and moved.indices == (COLUMNS,)


def test_replacements_are_not_substituted_again() -> None:
    one, two = RANGES[1:3]
    assert reindex(add(one, scale(two, 10)), {one: two, two: one}) is add(two, scale(one, 10))


def test_values_independent_of_an_axis_stay_the_same_node() -> None:
    load = memory(5).index(RANGES[3]).load()
    assert reindex(load, {ROWS: COLUMNS}) is load
    number = const(2.0, dtypes.float32)
    assert reindex(number, {ROWS: COLUMNS}) is number
