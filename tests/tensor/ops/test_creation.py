"""Tensors from a shape alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.values.arrays import numbers, same

from glassgrad import Tensor, dtypes

ON_BOTH_BACKENDS = True


def test_zeros_ones_and_full_have_their_shape_and_dtype() -> None:
    same(Tensor.zeros(2, 3), np.zeros((2, 3), np.float32))
    same(Tensor.ones((2, 3), dtype=dtypes.int8), np.ones((2, 3), np.int8))
    same(Tensor.full((2,), 7), np.full(2, 7, np.int32))
    same(Tensor.full((2,), 7.5), np.full(2, 7.5, np.float32))
    same(Tensor.full((), True), np.array(True))
    same(Tensor.full((2,), 2.7, dtype="int32"), np.full(2, 2, np.int32))
    same(Tensor.zeros(0, 3), np.zeros((0, 3), np.float32))


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(-4, 4).filter(bool))
def test_arange_counts_as_numpy_does(start: int, stop: int, step: int) -> None:
    same(Tensor.arange(start, stop, step), np.arange(start, stop, step, dtype=np.int32))


def test_arange_of_floats_and_of_one_number() -> None:
    same(Tensor.arange(4), np.arange(4, dtype=np.int32))
    same(Tensor.arange(0, 1, 0.25), np.arange(0, 1, 0.25, dtype=np.float32))
    same(Tensor.arange(3.0), np.arange(3, dtype=np.float32))
    same(Tensor.arange(3, dtype="uint8"), np.arange(3, dtype=np.uint8))


def test_linspace_holds_both_ends() -> None:
    same(Tensor.linspace(0, 10, 5), np.linspace(0, 10, 5, dtype=np.float32))
    same(Tensor.linspace(3, 10, 1), np.array([3], np.float32))


@pytest.mark.parametrize(("n", "m"), [(3, None), (2, 4), (4, 2), (1, 1), (0, 3)])
def test_eye(n: int, m: int | None) -> None:
    same(Tensor.eye(n, m), np.eye(n, m, dtype=np.float32))


def test_like_methods_take_shape_and_dtype() -> None:
    x = Tensor(numbers((2, 3), "float64"))
    assert x.zeros_like().dtype is dtypes.float64
    assert x.ones_like(dtype="int32").tolist() == [[1] * 3] * 2
    assert x.full_like(4).tolist() == [[4.0] * 3] * 2
    assert x.empty_like().shape == (2, 3)


def test_two_tensors_of_zeros_are_two_parameters() -> None:
    x, y = Tensor.zeros(2), Tensor.zeros(2)
    dx, dy = (x * 2 + y * 3).sum().gradient(x, y)
    assert (dx.tolist(), dy.tolist()) == ([2, 2], [3, 3])


def test_two_tensors_of_zeros_do_not_share_memory() -> None:
    x, y, z = Tensor.zeros(2), Tensor.zeros(2), Tensor.zeros(2)
    x.realize(y, z)
    x += 1
    y += 2
    assert (x.tolist(), y.tolist(), z.tolist()) == ([1, 1], [2, 2], [0, 0])
    dx, dy = (x * 2 + y * 3).sum().gradient(x, y)
    assert (dx.tolist(), dy.tolist()) == ([2, 2], [3, 3])


def test_empty_memory_belongs_to_the_tensor_and_can_be_written() -> None:
    x = Tensor.empty(2, 2, dtype="int64")
    x.assign(3)
    assert x.tolist() == [[3, 3], [3, 3]]


@pytest.mark.parametrize("make", [
    lambda **kw: Tensor.empty(2, **kw), lambda **kw: Tensor.full((2,), 1.0, **kw),
    lambda **kw: Tensor.zeros(2, **kw), lambda **kw: Tensor.ones(2, **kw),
    lambda **kw: Tensor.arange(3.0, **kw), lambda **kw: Tensor.linspace(0, 1, 3, **kw),
    lambda **kw: Tensor.eye(2, **kw), lambda **kw: Tensor.eye(0, **kw),
    lambda **kw: Tensor.rand(2, **kw), lambda **kw: Tensor.randn(2, **kw),
    lambda **kw: Tensor.uniform(2, **kw), lambda **kw: Tensor.normal(2, **kw),
    lambda **kw: Tensor.kaiming_uniform(2, 2, **kw), lambda **kw: Tensor.glorot_uniform(2, 2, **kw),
    lambda **kw: Tensor.scaled_uniform(2, **kw), lambda **kw: Tensor([1.0]).zeros_like(**kw),
    lambda **kw: Tensor([1.0]).empty_like(**kw), lambda **kw: Tensor([1.0]).rand_like(**kw),
])  # fmt: skip
def test_created_tensors_are_parameters_unless_told_otherwise(make: Any) -> None:
    assert make().is_param
    assert make(requires_grad=True).is_param
    assert not make(requires_grad=False).is_param
    assert make(device="CPU").device == "CPU"
    with pytest.raises(TypeError, match="dtpye"):
        make(dtpye="float32")
