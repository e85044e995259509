"""Padding modes and concatenation, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as arrays_of
from support.references.finite_differences import check
from support.values.arrays import distinct, numbers, same

from glassgrad import Tensor
from glassgrad.devices.python.device import python_target
from glassgrad.schedule import schedule

ON_BOTH_BACKENDS = True
NAMES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", NAMES)
@settings(max_examples=10)
@given(data=st.data())
def test_values_go_on_around(mode: str, data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(2, 4), min_size=1, max_size=3)))
    widths = [tuple(data.draw(st.integers(0, n - 1)) for _ in "ab") for n in shape]
    x = numbers(shape)
    same(Tensor(x).pad(tuple(widths), mode=mode), np.pad(x, widths, mode=NAMES[mode]))  # type: ignore[call-overload]


@pytest.mark.parametrize("mode", NAMES)
def test_negative_widths_cut_first(mode: str) -> None:
    x = numbers((3, 5))
    wanted = np.pad(x[:2, 1:], ((1, 0), (0, 2)), mode=NAMES[mode])  # type: ignore[call-overload]
    same(Tensor(x).pad(((1, -1), (-1, 2)), mode=mode), wanted)


def test_an_edge_may_be_repeated_more_often_than_it_is_long() -> None:
    x = numbers((2, 3))
    same(Tensor(x).pad((7, 9), mode="replicate"), np.pad(x, ((0, 0), (7, 9)), mode="edge"))


@pytest.mark.parametrize("mode", NAMES)
def test_gradients_of_padding(mode: str) -> None:
    check(lambda t: (t * t).pad((1, 2), mode=mode), distinct((2, 3)))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_cat_and_stack_agree_with_numpy_to_the_sign_of_zero(data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, 2))
    sizes = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=5))
    shapes = [tuple(n if i == axis else 2 for i in range(3)) for n in sizes]
    values = st.sampled_from([-0.0, 0.0, 1.5, -np.inf, np.nan])
    arrays = [data.draw(arrays_of(np.float32, shape, elements=values)) for shape in shapes]
    found = Tensor.cat(*[Tensor(array) for array in arrays], dim=axis).numpy()
    expected = np.concatenate(arrays, axis)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
    first = arrays[0]
    stacked = Tensor.stack(Tensor(first), Tensor(-first), dim=axis).numpy()
    np.testing.assert_array_equal(stacked, np.stack([first, -first], axis))
    assert np.array_equal(np.signbit(stacked), np.signbit(np.stack([first, -first], axis)))


@pytest.mark.parametrize("dtypes", [("int8", "uint8"), ("bool", "int32"), ("float16", "int64")])
def test_concatenation_promotes_dtypes(dtypes: tuple[str, str]) -> None:
    parts = [Tensor(np.array([0, 1], dtype=dtype)) for dtype in dtypes]
    joined = parts[0].cat(parts[1], parts[0])
    assert joined.dtype is (parts[0] + parts[1]).dtype
    assert joined.tolist() == [0, 1, 0, 1, 0, 1]


@pytest.mark.parametrize("count", [31, 33, 600])
def test_many_tensors_are_joined_by_few_kernels_of_fewer_kinds(count: int) -> None:
    arrays = [np.full((2, 3), number, dtype=np.float32) for number in range(count)]
    tensors = [Tensor(array) for array in arrays]
    made = schedule([Tensor.stack(*tensors).uop], python_target())
    groups = -(-count // 16) if count > 32 else 0
    assert len(made.kernels) == groups + (-(-groups // 16) if groups > 32 else 0) + 1
    assert len(set(made.kernels)) <= 5
    np.testing.assert_array_equal(Tensor.stack(*tensors).numpy(), np.stack(arrays))


def test_each_of_many_joined_tensors_gets_its_gradient() -> None:
    tensors = [Tensor(np.full(2, float(number))) for number in range(40)]
    found = (Tensor.cat(*tensors) ** 2).sum().gradient(*tensors)
    assert [g.tolist() for g in found] == [[2.0 * n] * 2 for n in range(40)]
