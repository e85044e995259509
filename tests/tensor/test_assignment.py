"""Assignment: assign, replace, and the operators that write in place."""

from __future__ import annotations

import operator

import pytest

from glassgrad import Tensor, dtypes

ON_BOTH_BACKENDS = True


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (operator.iadd, [7, 10]), (operator.isub, [3, 4]), (operator.imul, [10, 21]),
        (operator.ifloordiv, [2, 2]), (operator.ipow, [25, 343]), (operator.iand, [0, 3]),
        (operator.ior, [7, 7]), (operator.ixor, [7, 4]), (operator.ilshift, [20, 56]),
        (operator.irshift, [1, 0]),
    ],
)  # fmt: skip
def test_in_place_operators_write_to_the_tensor(function: object, wanted: list[int]) -> None:
    x = Tensor([5, 7])
    kept = x
    x = function(x, Tensor([2, 3]))  # type: ignore[operator]
    assert x is kept
    assert x.tolist() == wanted


def test_in_place_division_and_product_of_floats() -> None:
    x = Tensor([4.0, 6.0])
    x /= 2
    assert x.tolist() == [2, 3]
    y = Tensor([[1.0, 2.0], [3.0, 4.0]])
    y @= y
    assert y.tolist() == [[7, 10], [15, 22]]


def test_assign_takes_numbers_and_lists_in_the_tensors_dtype() -> None:
    x = Tensor([1.0, 2.0])
    assert x.assign(7).tolist() == [7, 7]
    assert x.assign([1, 2]).tolist() == [1, 2]
    assert x.dtype is dtypes.float32


def test_replace_and_clone() -> None:
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    copy = x.clone()
    x.replace(y)
    assert (x.tolist(), copy.tolist()) == ([3, 4], [1, 2])
    assert copy.is_param
