"""roll, diagonals, grids and formulas against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.references.finite_differences import check
from support.values.arrays import FULL_SHAPES, distinct, numbers, same

from glassgrad import Tensor
from glassgrad.ir.ops import OpGroup, Ops


@given(FULL_SHAPES, st.data())
def test_roll_brings_back_what_falls_off(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = numbers(shape)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    shift = data.draw(st.integers(-9, 9))
    same(Tensor(x).roll(shift, axis), np.roll(x, shift, axis))
    same(Tensor(x).roll(shift), np.roll(x, shift))


def test_roll_takes_several_axes() -> None:
    x = numbers((3, 4, 5))
    same(Tensor(x).roll((1, -2), (0, 2)), np.roll(x, (1, -2), (0, 2)))
    same(Tensor(x[:0]).roll(2, 0), x[:0])


@given(st.data())
def test_diagonal_of_any_two_axes(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=2, max_size=4)))
    first, second = data.draw(st.permutations(range(len(shape))))[:2]
    offset = data.draw(st.integers(-4, 4))
    x = numbers(shape)
    same(Tensor(x).diagonal(offset, first, second), np.diagonal(x, offset, first, second))


def test_diag_of_a_vector_and_of_a_matrix() -> None:
    x = numbers((4,))
    same(Tensor(x).diag(), np.diag(x))
    y = numbers((3, 5))
    same(Tensor(y).diag(), np.diag(y))


@pytest.mark.parametrize("indexing", ["ij", "xy"])
def test_meshgrid_spans_a_grid(indexing: str) -> None:
    vectors = [numbers((n,)) for n in (2, 3, 4)]
    for count in (1, 2, 3):
        wanted = np.meshgrid(*vectors[:count], indexing=indexing)  # type: ignore[call-overload]
        got = Tensor.meshgrid(*map(Tensor, vectors[:count]), indexing=indexing)
        for one, other in zip(got, wanted, strict=True):
            same(one, other)


def test_rearrange_reorders_splits_and_joins() -> None:
    x = numbers((2, 6, 5))
    t = Tensor(x)
    same(t.rearrange("b t c -> c (b t)"), x.transpose(2, 0, 1).reshape(5, 12))
    same(
        t.rearrange("b (h w) c -> b c h w", h=2),
        x.reshape(2, 2, 3, 5).transpose(0, 3, 1, 2),
    )
    same(t.rearrange("b ... -> ... b"), x.transpose(1, 2, 0))
    same(t.rearrange("... -> (...)"), x.reshape(-1))
    same(t.rearrange("b t c -> b 1 t c ()"), x.reshape(2, 1, 6, 5, 1))
    same(Tensor(x[:1]).rearrange("1 t c -> c t"), x[0].T)
    same(
        t.rearrange("a (b c) d -> (c a) (d b)", c=3).rearrange(
            "(c a) (d b) -> a (b c) d", c=3, b=2
        ),
        x,
    )


def test_arrangement_is_movement_alone() -> None:
    x = Tensor.empty(4, 6)
    for y in (x.roll(3, 1), x.diagonal(1), x.rearrange("a (b c) -> (c a) b", b=2)):
        assert {node.op for node in y.uop.toposort()} <= OpGroup.MOVEMENT | {Ops.BUFFER}


def test_gradients_of_arrangement() -> None:
    x = distinct((3, 4))
    check(lambda t: (t * t).roll(3, 1), x)
    check(lambda t: (t * t).diagonal(1), x)
    check(lambda t: (t * t).diag(), distinct((3,)))
    check(lambda t: (t * t).rearrange("a (b c) -> c (a b)", b=2), x)
