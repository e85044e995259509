"""Index arithmetic of movement ops against what NumPy does with the elements."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.compiler.schedules import assign, leaf
from support.random.movement import (
    random_chain,
    step_expand,
    step_flip,
    step_gather,
    step_pad,
    step_permute,
    step_reshape,
    step_shrink,
    step_window,
    step_window_adjoint,
)
from support.random.pool import Pool, Refused, Value
from support.references.graph import Array, evaluate

from glassgrad.base.dtype import dtypes
from glassgrad.ir.linear import ZERO
from glassgrad.ir.ops import Ops
from glassgrad.ir.reindex import reindex
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.schedule import movement
from glassgrad.schedule.movement import (
    MOVES,
    Indices,
    broadcast_indices,
    destination,
    gather_indices,
    move,
)

STEPS = {
    Ops.RESHAPE: step_reshape,
    Ops.PERMUTE: step_permute,
    Ops.EXPAND: step_expand,
    Ops.PAD: step_pad,
    Ops.SHRINK: step_shrink,
    Ops.FLIP: step_flip,
    Ops.WINDOW: step_window,
    Ops.WINDOW_ADJOINT: step_window_adjoint,
}


def full_indices(shape: tuple[int, ...]) -> Indices:
    return tuple(ZERO if n == 1 else make_range(axis, n) for axis, n in enumerate(shape))


def at(expression: UOp, axes: Indices, position: tuple[int, ...]) -> int:
    """The value of an index expression at one position."""
    known = {r: const(i) for r, i in zip(axes, position, strict=True) if r is not ZERO}
    found = reindex(expression, known)
    assert found.is_const, found
    return found.arg


def moved_elements(x: Array, shape: tuple[int, ...], moved: Indices, conditions: Indices) -> Array:
    """What a reader sees who follows these indices through x, element by element."""
    axes = full_indices(shape)
    out = np.zeros(shape, x.dtype)
    for position in product(*map(range, shape)):
        if all(at(condition, axes, position) for condition in conditions):
            out[position] = x[tuple(at(index, axes, position) for index in moved)]
    return out


def random_move(op: Ops, seed: int) -> UOp:
    """A node that moves a leaf of numbers that are all different."""
    pool = Pool(Random(seed), 40)
    while True:
        pool.values.clear()
        shape = tuple(pool.rng.choice((1, 1, 2, 3, 4, 5)) for _ in range(pool.rng.randrange(1, 4)))
        array = np.arange(1.0, np.prod(shape) + 1).reshape(shape)
        pool.values.append(Value(leaf(array, "float64"), array, True))
        try:
            return STEPS[op](pool).uop
        except Refused:
            continue


def test_every_move_is_tested_here() -> None:
    assert set(STEPS) == set(MOVES)


@pytest.mark.parametrize("op", STEPS, ids=lambda op: op.name)
@given(seed=st.integers(0, 10**9))
def test_a_move_reads_the_elements_that_numpy_reads(op: Ops, seed: int) -> None:
    node = random_move(op, seed)
    want = evaluate(node)
    x = evaluate(node.src[0])
    if want.size > 500:
        return
    got = moved_elements(x, node.shape, *move(node, full_indices(node.shape)))
    np.testing.assert_array_equal(got, want)


@given(seed=st.integers(0, 10**9))
def test_a_chain_of_moves_composes(seed: int) -> None:
    rng = Random(seed)
    pool = Pool(rng, 40)
    array = np.arange(1.0, 13.0).reshape(3, 4)
    pool.values.append(Value(leaf(array, "float64"), array, True))
    for _ in range(4):
        step = rng.choice((step_reshape, step_permute, step_shrink, step_flip, step_window))
        try:
            step(pool)
        except Refused:
            continue
    node = pool.values[-1].uop
    indices, shape, want = full_indices(node.shape), node.shape, evaluate(node)
    while node.op is not Ops.BUFFER:
        indices, conditions = move(node, indices)
        assert conditions == ()
        node = node.src[0]
    np.testing.assert_array_equal(moved_elements(array, shape, indices, ()), want)


def test_reshape_keeps_groups_of_axes_separate() -> None:
    x = leaf(np.zeros((6, 5, 4)))
    node = UOp(Ops.RESHAPE, x.dtype, (x,), (2, 3, 5, 2, 2))
    axes = full_indices(node.shape)
    (first, second, third), _ = move(node, axes)
    assert second is axes[2]
    assert first.ranges == {axes[0], axes[1]}
    assert third.ranges == {axes[3], axes[4]}


def test_reshape_there_and_back_is_the_same_index() -> None:
    x = leaf(np.zeros((6, 4)))
    wide = UOp(Ops.RESHAPE, x.dtype, (x,), (3, 8))
    back = UOp(Ops.RESHAPE, x.dtype, (wide,), (6, 4))
    axes = full_indices((6, 4))
    assert move(wide, move(back, axes)[0])[0] == axes


def test_flipping_twice_is_the_same_index() -> None:
    x = leaf(np.zeros((6, 4)))
    once = UOp(Ops.FLIP, x.dtype, (x,), (0, 1))
    twice = UOp(Ops.FLIP, x.dtype, (once,), (0, 1))
    axes = full_indices((6, 4))
    assert move(once, move(twice, axes)[0])[0] == axes


def test_padding_that_is_cut_off_again_leaves_no_condition() -> None:
    x = leaf(np.zeros((6,)))
    padded = UOp(Ops.PAD, x.dtype, (x,), ((2, 3),))
    cut = UOp(Ops.SHRINK, x.dtype, (padded,), ((2, 8),))
    axes = full_indices((6,))
    assert move(padded, move(cut, axes)[0]) == (axes, ())


def test_moved_indices_are_cached_until_cleared() -> None:
    x = leaf(np.zeros((6, 4)))
    node = UOp(Ops.PERMUTE, x.dtype, (x,), (1, 0))
    axes = full_indices((4, 6))
    movement.clear()
    assert move(node, axes) is move(node, axes)
    assert len(movement._cache) == 1
    movement.clear()
    assert not movement._cache


def test_the_cache_of_moves_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    movement.clear()
    monkeypatch.setattr(movement, "MAX_CACHED_MOVES", 3)
    for n in range(2, 12):
        x = leaf(np.zeros((n, 4)))
        move(UOp(Ops.PERMUTE, x.dtype, (x,), (1, 0)), full_indices((4, n)))
    assert len(movement._cache) <= 4
    movement.clear()


def test_broadcasting_reads_axes_of_one_element_at_zero() -> None:
    axes = full_indices((2, 3, 4))
    assert broadcast_indices(axes, (2, 3, 4), (2, 3, 4)) is axes
    assert broadcast_indices(axes, (2, 3, 4), (3, 1)) == (axes[1], ZERO)
    assert broadcast_indices(axes, (2, 3, 4), ()) == ()


def test_gather_reads_at_a_value_of_the_graph_and_says_where_that_is_inside() -> None:
    x, index = leaf(np.zeros((5, 4))), leaf([[1, 7, 0, -1]], "int32")
    node = UOp(Ops.GATHER, x.dtype, (x, index), 0)
    axes = full_indices((1, 4))
    (row, column), conditions = gather_indices(node, axes)
    assert column is axes[1]
    assert row.op is Ops.INDEX and row.src[0] is index
    assert len(conditions) == 2, "not below 0, and below 5"


@given(seed=st.integers(0, 10**9))
def test_a_write_follows_the_chain_of_moves(seed: int) -> None:
    rng = Random(seed)
    target = leaf(np.zeros((3, 4, 2)))
    chain, shape = random_chain(rng, target.shape)
    value = leaf(np.arange(1.0, np.prod(shape) + 1).reshape(shape))
    node = assign(target, value, *chain)
    axes = full_indices(shape)
    where = destination(node, axes)
    out = np.zeros(target.shape)
    for position in product(*map(range, shape)):
        out[tuple(at(i, axes, position) for i in where)] = evaluate(value)[position]
    np.testing.assert_array_equal(out, evaluate(node))


def test_random_gathers_are_correct() -> None:
    """The steps of the fuzzer make gathers too; their axis is the one that is replaced."""
    pool = Pool(Random(1), 40)
    array = np.arange(12.0).reshape(3, 4)
    pool.values.append(Value(leaf(array, "float64"), array, True))
    node = step_gather(pool).uop
    axes = full_indices(node.shape)
    moved, _ = gather_indices(node, axes)
    assert [i for i, (a, b) in enumerate(zip(moved, axes, strict=True)) if a is not b] == [node.arg]
    assert moved[node.arg].dtype is dtypes.index
