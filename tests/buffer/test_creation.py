"""Buffers from data, shapes and random bits; errors for bad data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import DTypeError, ShapeError
from glassgrad.buffer import Buffer


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        ([[1, 2, 3], [4, 5, 6]], dtypes.int32, (2, 3)),
        ((1.5, 2), dtypes.float32, (2,)),
        ([True, False], dtypes.bool, (2,)),
        (7, dtypes.int32, ()),
        (2.5, dtypes.float32, ()),
        ([], dtypes.float32, (0,)),
        ([[], []], dtypes.float32, (2, 0)),
    ],
)
def test_the_dtype_is_that_of_the_data(data: Any, dtype: Any, shape: Any) -> None:
    buffer = Buffer(data)
    assert buffer.dtype is dtype and buffer.shape == shape
    assert buffer.to_python() == (list(data) if isinstance(data, tuple) else data)


@pytest.mark.parametrize("dtype", dtypes.all, ids=lambda dtype: dtype.name)
def test_creation_in_every_dtype(dtype: Any) -> None:
    assert Buffer([0, 1, 1], dtype).to_python() == [0, 1, 1]
    assert Buffer([0, 1], dtype.name).dtype is dtype


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Buffer([[1, 2], [3]]), ShapeError, "at depth 1 there are lengths 1, 2"),
        (lambda: Buffer([1, [2]]), ShapeError, "lists and single values are mixed"),
        (lambda: Buffer([1, "x"]), DTypeError, "holds str"),
        (lambda: Buffer([None]), DTypeError, "holds NoneType"),
        (lambda: Buffer([True, 2]), DTypeError, "mixes bool and int"),
        (lambda: Buffer([300], "int8"), DTypeError, "300 does not fit int8"),
        (lambda: Buffer([1.5], "int32"), DTypeError, "1.5 is no int32"),
        (lambda: Buffer([1], dtype=int), DTypeError, "is not a dtype"),
        (lambda: Buffer([1], dtype="nonsense"), DTypeError, "no dtype 'nonsense'"),
        (lambda: Buffer(object()), TypeError, "object does not export its memory"),
        (lambda: Buffer.zeros((2, -1)), ShapeError, "cannot be negative"),
        (lambda: Buffer.zeros((2, 1.5)), ShapeError, "whole number"),
        (lambda: Buffer.uniform((2,), dtype="int32"), DTypeError, "are floats, not int32"),
        (lambda: Buffer.arange(1, 2, 0), ShapeError, "step by 0"),
        (lambda: Buffer.concatenate([]), ShapeError, "nothing to concatenate"),
    ],
)
def test_bad_data_is_refused(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


def test_creation() -> None:
    assert Buffer.ones((2, 2)).to_python() == [[1.0, 1.0], [1.0, 1.0]]
    assert Buffer.full((2,), 7, "uint8").to_python() == [7, 7]
    assert Buffer.full((), 2.5).to_python() == 2.5
    assert Buffer.empty((2, 0)).to_python() == [[], []]
    assert Buffer.arange(5).to_python() == [0, 1, 2, 3, 4]
    assert Buffer.arange(5, 0, -2).to_python() == [5, 3, 1]
    assert Buffer.arange(0.0, 1.0, 0.25).to_python() == [0.0, 0.25, 0.5, 0.75]
    assert Buffer.arange(3, 3).shape == (0,)
    parts = [Buffer([[1], [2]]), Buffer([[3, 4], [5, 6]])]
    assert Buffer.concatenate(parts, axis=-1).to_python() == [[1, 3, 4], [2, 5, 6]]


def test_random_numbers_have_their_distribution_and_follow_the_seed() -> None:
    Buffer.manual_seed(5)
    first, second = Buffer.uniform((4000,), -2.0, 2.0).numpy(), Buffer.normal((4000,), 1.0, 3.0)
    assert -2 <= first.min() < -1.9 and 1.9 < first.max() < 2
    assert abs(first.mean()) < 0.1
    assert abs(second.numpy().mean() - 1) < 0.2 and abs(second.numpy().std() - 3) < 0.15
    Buffer.manual_seed(5)
    assert np.array_equal(Buffer.uniform((4000,), -2.0, 2.0).numpy(), first)
    assert not np.array_equal(Buffer.uniform((4000,), -2.0, 2.0).numpy(), first)
