"""Python and NumPy data as tensors, and back."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.values.arrays import FLOATS, INTS, SHAPES, numbers, same

from glassgrad import Tensor, dtypes


@given(SHAPES, st.sampled_from((*FLOATS, *INTS, "bool", "float16")))
def test_arrays_go_in_and_come_out_unchanged(shape: tuple[int, ...], dtype: str) -> None:
    x = np.asarray(numbers(shape, dtype))
    same(Tensor(x), x)
    assert Tensor(x).tolist() == x.tolist()


def test_arrays_are_copied_unless_their_memory_is_asked_for() -> None:
    x = numbers((4, 4))
    tensor, shared = Tensor(x), Tensor.from_memory(x)
    before = x[0, 0]
    x[0, 0] = 123
    assert tensor.tolist()[0][0] == before
    assert shared.tolist()[0][0] == 123
    assert np.shares_memory(shared.numpy(), x)
    assert not np.shares_memory(tensor.numpy(), x)


def test_arrays_in_any_memory_order_are_read_right() -> None:
    x = numbers((4, 6))
    for view in (x.T, x[::2], x[:, ::-1], np.asfortranarray(x), x[1:3, 2:5]):
        same(Tensor(view), view)
        same(Tensor(view) + 1, view + 1)


def test_arrays_of_the_other_byte_order_are_converted() -> None:
    x = np.arange(4, dtype=">i4")
    assert Tensor(x).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1, "int32"), (1.5, "float32"), (True, "bool"), ([1, 2], "int32"), ([1, 2.5], "float32"),
        ([True, False], "bool"), ([True, 2], "int32"), ([], "float32"), ([[], []], "float32"),
        (((1, 2), (3, 4)), "int32"),
    ],
)  # fmt: skip
def test_python_data_gets_the_default_dtypes(data: object, dtype: str) -> None:
    tensor = Tensor(data)
    assert tensor.dtype is dtypes.named(dtype)
    assert tensor.shape == np.array(data).shape
    assert tensor.tolist() == np.array(data, dtype).tolist()


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS, "float16", "bfloat16", "fp8e4m3", "fp8e5m2"])
def test_lists_take_the_dtype_that_is_asked_for(dtype: str) -> None:
    tensor = Tensor([[1, 2], [3, 4]], dtype=dtype)
    assert tensor.dtype is dtypes.named(dtype)
    assert tensor.tolist() == [[1, 2], [3, 4]]


def test_bytes_are_items_of_a_dtype() -> None:
    assert Tensor(b"\x01\x02\x03").tolist() == [1, 2, 3]
    assert Tensor(b"\x01\x00\x02\x00", dtype=dtypes.int16).tolist() == [1, 2]
    assert Tensor(bytearray(4)).dtype is dtypes.uint8


def test_memoryviews_are_tensors_with_their_format() -> None:
    raw = memoryview(np.array([[1, 2], [3, 4]], np.int16))
    tensor = Tensor(raw)
    assert tensor.dtype is dtypes.int16
    assert tensor.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("lend", [memoryview, np.asarray, lambda x: array("f", x.ravel())])
def test_memory_that_others_lend_is_copied_when_the_tensor_is_made(
    lend: Callable[[Any], Any],
) -> None:
    x = np.ones((2, 3), np.float32)
    lent = lend(x)
    tensor, doubled = Tensor(lent), Tensor(lent) * 2
    np.asarray(lent)[...] = 0
    assert tensor.tolist() == np.ones(tensor.shape).tolist()
    assert doubled.tolist() == np.full(tensor.shape, 2.0).tolist()
    tensor += 1
    tensor.realize()
    assert not np.asarray(lent).any()


def test_numpy_scalars_keep_their_dtype() -> None:
    assert Tensor(np.float64(1.5)).dtype is dtypes.float64
    assert Tensor(np.int8(3)).item() == 3


def test_lists_of_tensors_are_stacked() -> None:
    x = Tensor([1.0, 2.0])
    assert Tensor([x, x * 2]).tolist() == [[1, 2], [2, 4]]


def test_a_tensor_of_a_tensor_holds_the_same_value() -> None:
    x = Tensor([1, 2])
    assert Tensor(x).uop is x.uop
    assert Tensor(x, dtype="float32").dtype is dtypes.float32
