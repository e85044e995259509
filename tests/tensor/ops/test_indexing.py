"""Indexing against NumPy: every mix of ints, slices, None, Ellipsis and integer tensors, masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.values.arrays import numbers, same

import glassgrad.tensor.lazy.realize
from glassgrad import Tensor, dtypes
from glassgrad.base.errors import AxisError

SHAPES = st.lists(st.sampled_from((1, 2, 3, 5)), min_size=0, max_size=4).map(tuple)


@st.composite
def basic_index(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    parts: list[Any] = []
    bound = st.none() | st.integers(-7, 7)
    for size in shape[: draw(st.integers(0, len(shape)))]:
        if draw(st.integers(0, 2)) == 0:
            parts.append(draw(st.integers(-size, size - 1)))
        else:
            step = draw(st.none() | st.sampled_from((1, 2, 3, -1, -2, -3)))
            parts.append(slice(draw(bound), draw(bound), step))
    for _ in range(draw(st.integers(0, 2))):
        parts.insert(draw(st.integers(0, len(parts))), None)
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), Ellipsis)
    return tuple(parts)


def _fits(index: tuple[Any, ...], shape: tuple[int, ...]) -> bool:
    """Parts behind an Ellipsis may meet other axes than they were drawn for."""
    try:
        np.empty(shape)[index]
    except IndexError:
        return False
    return True


@given(SHAPES, st.data())
def test_basic_indexing_agrees_with_numpy(shape: tuple[int, ...], data: st.DataObject) -> None:
    index = data.draw(basic_index(shape).filter(lambda found: _fits(found, shape)))
    x = numbers(shape)
    same(Tensor(x)[index], np.asarray(x[index]))


@given(SHAPES, st.data())
def test_writing_to_a_basic_index_agrees_with_numpy(
    shape: tuple[int, ...], data: st.DataObject
) -> None:
    index = data.draw(basic_index(shape).filter(lambda found: _fits(found, shape)))
    x = numbers(shape)
    tensor = Tensor(x.copy())
    wanted = np.array(x)
    value = numbers(np.asarray(wanted[index]).shape, seed=5)
    wanted[index] = value
    tensor[index] = Tensor(np.asarray(value))
    same(tensor, wanted)


@st.composite
def mixed_index(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """At least one array of ints among slices (ints beside arrays behave differently in NumPy)."""
    parts: list[Any] = [slice(draw(st.none() | st.integers(0, 1)), None) for _ in shape]
    places = draw(st.lists(st.integers(0, len(shape) - 1), unique=True, min_size=1, max_size=3))
    common = draw(st.sampled_from(((2,), (3, 1), (1,), (2, 2), ())))
    for place in places:
        size = shape[place]
        count = int(np.prod(common))
        chosen = draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count))
        parts[place] = np.array(chosen, np.int32).reshape(common)
    return tuple(parts)


@given(SHAPES.filter(len), st.data())
def test_lookups_by_integer_tensors_agree_with_numpy(
    shape: tuple[int, ...], data: st.DataObject
) -> None:
    index = data.draw(mixed_index(shape))
    x = numbers(shape)
    ours = tuple(Tensor(part) if isinstance(part, np.ndarray) else part for part in index)
    same(Tensor(x)[ours], np.asarray(x[index]))


def test_lists_and_arrays_of_ints_are_indices_too() -> None:
    x = numbers((4, 3))
    same(Tensor(x)[[2, 0, -1]], x[[2, 0, -1]])
    same(Tensor(x)[np.array([1, 1])], x[[1, 1]])
    same(Tensor(x)[:, [0, 2]], x[:, [0, 2]])


def test_an_embedding_is_a_lookup_of_rows() -> None:
    table, tokens = numbers((10, 4)), np.array([[1, 2, 3], [9, 0, 9]], np.int64)
    same(Tensor(table)[Tensor(tokens)], table[tokens])


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_gather_picks_along_an_axis(dim: int) -> None:
    x = numbers((3, 4))
    index = np.random.default_rng(0).integers(0, 3, (3, 4))
    same(Tensor(x).gather(dim, Tensor(index)), np.take_along_axis(x, index, dim))


def test_gather_may_use_a_part_of_the_other_axes() -> None:
    x, index = numbers((3, 4)), np.array([[2, 0, 0, 1]])
    same(Tensor(x).gather(1, Tensor(index)), np.take_along_axis(x[:1], index, 1))


def test_one_hot() -> None:
    found = Tensor([2, 0]).one_hot(3)
    assert found.dtype is dtypes.int32
    assert found.tolist() == [[0, 0, 1], [1, 0, 0]]


def test_tensors_have_a_length_and_can_be_iterated() -> None:
    x = Tensor([[1, 2], [3, 4]])
    assert len(x) == 2
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]


def test_written_numbers_are_broadcast() -> None:
    x = Tensor.zeros(3, 2)
    x[1] = 5
    x[:, 1] = Tensor([7.0])
    assert x.tolist() == [[0, 7], [5, 7], [0, 7]]


def test_writing_a_slice_is_seen_by_later_readers_only() -> None:
    x = Tensor([1, 2, 3]).realize()
    before = x + 0
    x[0] = 9
    after = x + 0
    assert (before.tolist(), after.tolist()) == ([1, 2, 3], [9, 2, 3])


MASK = numbers((2, 3, 4)) > 0
PLACES = np.array([[0, 2], [1, -1]])
MASKED: dict[str, tuple[Any, ...]] = {
    "all axes": (MASK,),
    "leading axes": (MASK[:, :, 0],),
    "one axis": (MASK[:, 0, 0], slice(1, None)),
    "trailing axes": (slice(None), MASK[0]),
    "behind an ellipsis": (..., MASK[0, 0]),
    "behind a number": (0, MASK[0]),
    "behind None": (None, MASK[:, :, 0], 1),
    "nothing": (MASK & False,),
}
NAMED: dict[str, tuple[Any, ...]] = {
    "one axis": (np.array([1, 1, 0]),),
    "an inner axis": (slice(None), PLACES),
    "two axes apart": (np.array([0, 1]), slice(None), np.array([3, 1])),
    "two axes together": (slice(None), PLACES, PLACES),
    "with a slice": (..., PLACES, slice(1, 3)),
    "a number apart": (1, slice(None, None, -1), PLACES),
    "a number next to it": (slice(None), 1, PLACES),
    "a number behind": (PLACES % 2, slice(1, None), 0),
    "with steps": (slice(1, 2), slice(None, None, -1), PLACES),
}


def as_tensors(index: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(Tensor(part) if isinstance(part, np.ndarray) else part for part in index)


@pytest.mark.parametrize("name", NAMED)
def test_tensors_and_numbers_mix(name: str) -> None:
    x = numbers((2, 3, 4))
    same(Tensor(x)[as_tensors(NAMED[name])], x[NAMED[name]])


@pytest.mark.parametrize("name", MASKED)
def test_masks_choose_elements(name: str) -> None:
    x = numbers((2, 3, 4))
    same(Tensor(x)[as_tensors(MASKED[name])], x[MASKED[name]])
    same(Tensor(x)[MASKED[name]], x[MASKED[name]])


@pytest.mark.parametrize("index", [*MASKED.values(), *NAMED.values()], ids=[*MASKED, *NAMED])
def test_writes_at_masks_and_index_tensors(index: tuple[Any, ...]) -> None:
    x = numbers((2, 3, 4))
    wanted, got = x.copy(), Tensor(x.copy())
    value = numbers(x[index].shape, seed=3)
    before = got + 0
    wanted[index] = value
    got[as_tensors(index)] = Tensor(value)
    same(got, wanted)
    same(before, x)
    wanted[index] = 7
    got[as_tensors(index)] = 7
    same(got, wanted)


def test_a_number_under_a_mask_is_written_lazily(monkeypatch: pytest.MonkeyPatch) -> None:
    x, mask = Tensor(numbers((3, 4))).contiguous(), Tensor(numbers((3,)) > 0) & True
    with monkeypatch.context() as patch:
        patch.setattr(glassgrad.tensor.lazy.realize, "plan_and_run", None)
        patch.setattr(glassgrad.tensor.lazy.realize, "look_up", None)
        x[mask] = 9
    wanted = numbers((3, 4)).copy()
    wanted[numbers((3,)) > 0] = 9
    same(x, wanted)


def test_what_is_written_gets_its_gradient() -> None:
    x, y = Tensor([1.0, 2.0, 3.0]), Tensor([5.0, 6.0])
    z = x * 2
    z[Tensor([2, 0])] = y * 3
    (z * Tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    assert x.grad.tolist() == [0, 20, 0]
    assert y.grad.tolist() == [300, 3]


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("is_summed", [False, True])
def test_computed_indices_are_checked_on_axes_of_any_size(size: int, is_summed: bool) -> None:
    x, other = Tensor(np.ones(size, np.float32)).realize(), Tensor([1.0, 2.0, 3.0]).realize()
    source = (x * 2).sum(0, keepdim=True).expand(size) if is_summed else x * 2
    for index in (0, size, -1, -size - 1):
        lazy = Tensor([index]).realize() * 1
        if -size <= index < size:
            assert (other - source[lazy]).tolist() == (other - source[[index]]).tolist()
        else:
            with pytest.raises(AxisError, match=f"for axis 0 of size {size}"):
                (other - source[lazy]).realize()
