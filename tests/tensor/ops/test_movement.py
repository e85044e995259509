"""Movement against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.values.arrays import FULL_SHAPES, SHAPES, numbers, same

from glassgrad import Tensor
from glassgrad.ir.ops import OpGroup, Ops


@given(FULL_SHAPES, st.data())
def test_reshape_fills_in_one_size(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = numbers(shape)
    wanted = list(data.draw(st.permutations(shape)))
    at = data.draw(st.integers(0, len(wanted) - 1))
    same(Tensor(x).reshape(wanted), x.reshape(wanted))
    wanted[at] = -1
    same(Tensor(x).reshape(*wanted), x.reshape(wanted))


def test_reshape_keeps_sizes_that_are_none() -> None:
    assert Tensor.empty(2, 3, 4).reshape(None, -1).shape == (2, 12)
    assert Tensor.empty(0, 3).reshape(0, -1, 1).shape == (0, 0, 1)
    assert Tensor(1.0).reshape(1, 1).shape == (1, 1)


@given(SHAPES, st.data())
def test_permute_and_transpose(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = numbers(shape)
    order = data.draw(st.permutations(range(len(shape))))
    same(Tensor(x).permute(tuple(order)), x.transpose(order))
    if shape:
        one, other = (data.draw(st.integers(-len(shape), len(shape) - 1)) for _ in "ab")
        same(Tensor(x).transpose(one, other), np.swapaxes(x, one, other))


def test_t_of_a_matrix() -> None:
    x = numbers((2, 3))
    same(Tensor(x).T, x.T)


@given(FULL_SHAPES, st.integers(0, 2))
def test_expand_repeats_axes_of_one_and_adds_axes_in_front(
    shape: tuple[int, ...], lead: int
) -> None:
    x = numbers(tuple(1 if size == 2 else size for size in shape))
    wide = (3,) * lead + tuple(4 if size == 1 else size for size in x.shape)
    same(Tensor(x).expand(wide), np.broadcast_to(x, wide))
    kept = tuple(
        -1 if size == old else size for size, old in zip(wide[lead:], x.shape, strict=True)
    )
    assert Tensor(x).expand(*kept).shape == wide[lead:]


@given(FULL_SHAPES, st.data())
def test_flip_takes_one_axis_or_several(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = numbers(shape)
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True, min_size=1))
    same(Tensor(x).flip(tuple(axes)), np.flip(x, axes))
    same(Tensor(x).flip(*axes), np.flip(x, axes))


def test_pad_takes_pairs_per_axis_or_flat_from_the_last_axis() -> None:
    x = numbers((2, 3))
    same(Tensor(x).pad(((1, 2), None)), np.pad(x, ((1, 2), (0, 0))))
    same(Tensor(x).pad((1, 2)), np.pad(x, ((0, 0), (1, 2))))
    same(Tensor(x).pad((1, 2, 3, 4)), np.pad(x, ((3, 4), (1, 2))))
    same(Tensor(x).pad((1, 1), value=7.5), np.pad(x, ((0, 0), (1, 1)), constant_values=7.5))
    same(Tensor(x).pad((-1, 1)), np.pad(x[:, 1:], ((0, 0), (0, 1))))
    same(Tensor(x).pad_to(None, 5), np.pad(x, ((0, 0), (0, 2))))


def test_shrink_and_shrink_to() -> None:
    x = numbers((4, 5))
    same(Tensor(x).shrink(((1, 3), None)), x[1:3])
    same(Tensor(x).shrink_to(2, None), x[:2])


@given(FULL_SHAPES, st.data())
def test_squeeze_unsqueeze_flatten_unflatten(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = numbers(shape)
    same(Tensor(x).squeeze(), x.squeeze())
    axis = data.draw(st.integers(-len(shape) - 1, len(shape)))
    same(Tensor(x).unsqueeze(axis), np.expand_dims(x, axis))
    first = data.draw(st.integers(0, len(shape) - 1))
    last = data.draw(st.integers(first, len(shape) - 1))
    flat = Tensor(x).flatten(first, last)
    assert flat.shape == (*shape[:first], int(np.prod(shape[first : last + 1])), *shape[last + 1 :])
    same(flat.unflatten(first, shape[first : last + 1]), x)


def test_squeeze_of_one_axis_leaves_others_and_larger_ones() -> None:
    x = Tensor.empty(1, 3, 1)
    assert x.squeeze(0).shape == (3, 1)
    assert x.squeeze(1).shape == (1, 3, 1)
    assert x.squeeze(-1).shape == (1, 3)


def test_split_and_chunk() -> None:
    x = numbers((7, 2))
    for got, wanted in zip(Tensor(x).split(3), (x[:3], x[3:6], x[6:]), strict=True):
        same(got, wanted)
    for got, wanted in zip(Tensor(x).split([2, 5]), (x[:2], x[2:]), strict=True):
        same(got, wanted)
    assert [part.shape for part in Tensor(x).chunk(3)] == [(3, 2), (3, 2), (1, 2)]


def test_repeat_and_repeat_interleave() -> None:
    x = numbers((2, 3))
    same(Tensor(x).repeat(2, 1), np.tile(x, (2, 1)))
    same(Tensor(x).repeat((4, 2, 3)), np.tile(x, (4, 2, 3)))
    same(Tensor(x).repeat_interleave(3), np.repeat(x, 3))
    same(Tensor(x).repeat_interleave(2, 1), np.repeat(x, 2, 1))


@pytest.mark.parametrize(("size", "step"), [(1, 1), (2, 1), (3, 2), (7, 4)])
def test_unfold_gives_sliding_windows(size: int, step: int) -> None:
    x = numbers((7, 2))
    wanted = np.lib.stride_tricks.sliding_window_view(x, size, 0)[::step]
    same(Tensor(x).unfold(0, size, step), wanted)


def test_cat_and_stack() -> None:
    x, y = numbers((2, 3)), numbers((2, 1), seed=1)
    same(Tensor(x).cat(Tensor(y), dim=1), np.concatenate([x, y], 1))
    same(Tensor.stack(Tensor(x), Tensor(x), dim=1), np.stack([x, x], 1))
    mask = x > 0
    same(Tensor(mask).cat(Tensor(~mask), dim=-1), np.concatenate([mask, ~mask], -1))


def test_triangles() -> None:
    x = numbers((2, 4, 3))
    for diagonal in (-1, 0, 2):
        same(Tensor(x).tril(diagonal), np.tril(x, diagonal))
        same(Tensor(x).triu(diagonal), np.triu(x, diagonal))


def test_movement_is_recorded_as_movement_alone() -> None:
    x = Tensor.empty(4, 6)
    y = x.reshape(2, 2, 6).permute(2, 0, 1).flip(0)[1:, ::-1].unsqueeze(0).expand(3, 5, 2, 2)
    assert {node.op for node in y.uop.toposort()} <= OpGroup.MOVEMENT | {Ops.BUFFER}


def test_what_expand_does_not_repeat_can_be_written() -> None:
    x = Tensor([[1.0, 2.0]]).realize()
    x.expand(1, 1, 2)[0, 0, 1] = 5.0
    assert x.tolist() == [[1, 5]]
