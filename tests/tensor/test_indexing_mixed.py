"""Reads and writes by any mix of indices, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.values.arrays import numbers, same

from glassgrad import Tensor

ON_BOTH_BACKENDS = True
SHAPES = st.lists(st.sampled_from((1, 2, 3, 4)), min_size=1, max_size=3).map(tuple)
Index = tuple[Any, ...]


@st.composite
def any_index(draw: st.DrawFn, shape: tuple[int, ...]) -> Index:
    """Ints, slices, integer arrays that broadcast, masks over one axis or more, None, Ellipsis."""
    parts: list[Any] = []
    wide = draw(st.sampled_from([(2,), (3,), (2, 3), (1,), ()]))
    axis, end = 0, draw(st.integers(0, len(shape)))
    while axis < end:
        size = shape[axis]
        kind = draw(st.sampled_from(["int", "slice", "slice", "array", "column", "mask"]))
        if kind == "mask":
            covered = shape[axis : axis + draw(st.integers(1, end - axis))]
            flags = draw(
                st.lists(st.booleans(), min_size=_numel(covered), max_size=_numel(covered))
            )
            parts.append(np.array(flags, dtype=bool).reshape(covered))
            axis += len(covered)
            continue
        if kind == "int":
            parts.append(draw(st.integers(-size, size - 1)))
        elif kind == "slice":
            bound = st.none() | st.integers(-5, 5)
            step = draw(st.none() | st.sampled_from((1, 2, 3, -1, -2)))
            parts.append(slice(draw(bound), draw(bound), step))
        else:
            places = wide if kind == "array" else (1,) * len(wide)
            count = _numel(places)
            values = draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count))
            parts.append(np.array(values, dtype=np.int64).reshape(places))
        axis += 1
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), None)
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), Ellipsis)
    return tuple(parts)


def _numel(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=int))


def fitting(shape: tuple[int, ...]) -> st.SearchStrategy[Index]:
    """Masks must fit the arrays beside them, which only NumPy knows."""

    def fits(index: Index) -> bool:
        try:
            np.empty(shape)[index]
        except IndexError:
            return False
        return True

    return any_index(shape).filter(fits)


def ours(index: Index, is_lazy: bool) -> Index:
    """Arrays as tensors, known already or computed later."""
    made = [Tensor(part) if isinstance(part, np.ndarray) else part for part in index]
    if is_lazy:
        made = [part ^ False if isinstance(part, Tensor) else part for part in made]
    return tuple(made)


def has_repeats(index: Index, shape: tuple[int, ...]) -> bool:
    """Whether some element is named twice: which value it gets then is not defined."""
    named = np.arange(_numel(shape)).reshape(shape)[index]
    return np.unique(named).size != np.size(named)


@settings(max_examples=60, deadline=None)
@given(SHAPES, st.booleans(), st.data())
def test_reading_agrees_with_numpy(shape: tuple[int, ...], is_lazy: bool, data: Any) -> None:
    index = data.draw(fitting(shape))
    x = numbers(shape)
    same(Tensor(x)[ours(index, is_lazy)], np.asarray(x[index]))


@settings(max_examples=60, deadline=None)
@given(SHAPES, st.booleans(), st.data())
def test_writing_agrees_with_numpy(shape: tuple[int, ...], is_lazy: bool, data: Any) -> None:
    index = data.draw(fitting(shape).filter(lambda found: not has_repeats(found, shape)))
    wanted = np.array(numbers(shape))
    tensor = Tensor(wanted.copy())
    value = numbers(np.asarray(wanted[index]).shape, seed=5)
    if data.draw(st.booleans()):
        tensor[ours(index, is_lazy)] = 7
        wanted[index] = 7
    else:
        tensor[ours(index, is_lazy)] = Tensor(value)
        wanted[index] = value
    same(tensor, wanted)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_reads_see_the_writes_before_them_and_none_after(data: Any) -> None:
    """A tensor is written to, read, and written from what was read, with looks in between."""
    shape = (3, 4)
    array = np.array(numbers(shape))
    tensor = Tensor(array.copy())
    seen: list[tuple[Tensor, Any]] = []
    for number in range(data.draw(st.integers(1, 5))):
        index = data.draw(fitting(shape).filter(lambda found: not has_repeats(found, shape)))
        where = ours(index, is_lazy=data.draw(st.booleans()))
        what = data.draw(st.sampled_from(["read", "write", "shift", "turn", "look"]))
        if what == "read":
            seen.append((tensor[where] * 2, np.array(array[index]) * 2))
        elif what == "write":
            tensor[where] = number
            array[index] = number
        elif what == "shift":
            tensor[where] = tensor[where] + 1
            array[index] = array[index] + 1
        elif what == "turn":  # everything is read elsewhere than it is written
            tensor[1:] = tensor.flip(0)[1:] + tensor[:1]
            array[1:] = array[::-1][1:] + array[:1]
        else:
            tensor.realize()
    for found, wanted in data.draw(st.permutations(seen)):
        same(found, np.asarray(wanted))
    same(tensor, array)


def test_the_last_of_several_values_for_one_index_stays() -> None:
    x, places = Tensor([0, 0, 0]), Tensor([1, 1, 2, 1])
    x[places] = Tensor([5, 6, 7, 8])
    assert x.tolist() == [0, 8, 7]


def test_a_mask_that_does_not_fit_is_refused() -> None:
    with pytest.raises(IndexError, match="mask of shape"):
        Tensor([[1, 2]])[Tensor([True, False])]


def test_values_of_another_shape_are_refused() -> None:
    x = Tensor([[1, 2], [3, 4]])
    with pytest.raises(ValueError, match="shape"):
        x[0] = Tensor([1, 2, 3])
    with pytest.raises(ValueError, match="shape"):
        x[Tensor([0, 1])] = Tensor([1, 2, 3])
