"""Pooling with indices, unpooling and transposed convolution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.oracle import oracle
from support.references.finite_differences import check
from support.values.arrays import distinct, numbers, same

from glassgrad import Tensor

ON_BOTH_BACKENDS = True
POOLS: list[dict[str, Any]] = [
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": (2, 3), "stride": 2, "ceil_mode": True},
    {"kernel_size": 2, "dilation": 2, "stride": 1},
]
CONVOLUTIONS: list[dict[str, Any]] = [
    {},
    {"stride": 2},
    {"stride": (2, 3), "padding": 1, "output_padding": (1, 0)},
    {"dilation": 2, "groups": 2},
    {"groups": 2, "stride": 2, "padding": (1, 2), "dilation": (2, 1)},
]


@pytest.mark.parametrize("options", POOLS)
def test_returned_indices_point_at_the_maxima(options: dict[str, Any]) -> None:
    x = distinct((2, 3, 5, 6))
    best, places = Tensor(x).max_pool2d(return_indices=True, **options)
    same(best, Tensor(x).max_pool2d(**options).numpy())
    found = np.take_along_axis(x.reshape(2, 3, 30), places.numpy().reshape(2, 3, -1), 2)
    same(best, found.reshape(best.shape))


@pytest.mark.parametrize("options", POOLS)
def test_returned_indices_match_pytorch(options: dict[str, Any]) -> None:
    torch = oracle("torch")
    x = numbers((2, 3, 5, 6), "float64")  # with ties
    best, places = torch.nn.functional.max_pool2d(torch.tensor(x), return_indices=True, **options)
    got = Tensor(x).max_pool2d(return_indices=True, **options)
    same(got[0], best.numpy())
    assert got[1].tolist() == places.tolist()


def test_unpooling_puts_values_back() -> None:
    x = distinct((2, 3, 4, 6))
    best, places = Tensor(x).max_pool2d(return_indices=True)
    back = best.max_unpool2d(places).numpy()
    assert back.shape == x.shape
    kept = back != 0
    assert (back[kept] == x[kept]).all()
    assert kept.sum() == best.numel()
    assert best.max_unpool2d(places, output_size=(5, 6)).shape == (2, 3, 5, 6)


def spread(x: np.ndarray, weight: np.ndarray, stride: int) -> np.ndarray:
    """Every input adds a scaled copy of the kernel."""
    batch, _, height, width = x.shape
    kernel = weight.shape[2:]
    shape = ((height - 1) * stride + kernel[0], (width - 1) * stride + kernel[1])
    result = np.zeros((batch, weight.shape[1], *shape))
    for i, j in np.ndindex(height, width):
        block = np.einsum("bc,cokl->bokl", x[:, :, i, j], weight)
        top, left = i * stride, j * stride
        result[:, :, top : top + kernel[0], left : left + kernel[1]] += block
    return result


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_every_input_spreads_the_kernel(stride: int) -> None:
    x, weight = distinct((2, 4, 3, 2)), distinct((4, 3, 2, 3), seed=1)
    got = Tensor(x).conv_transpose2d(Tensor(weight), stride=stride)
    same(got, spread(x, weight, stride), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("options", CONVOLUTIONS)
def test_transposed_convolution_equals_pytorch(options: dict[str, Any]) -> None:
    torch = oracle("torch")
    x, weight = distinct((2, 4, 5, 6)), distinct((4, 3, 3, 2), seed=1)
    bias = distinct((3 * options.get("groups", 1),), seed=2)
    tensors = [torch.tensor(array) for array in (x, weight, bias)]
    wanted = torch.nn.functional.conv_transpose2d(*tensors, **options).numpy()
    got = Tensor(x).conv_transpose2d(Tensor(weight), Tensor(bias), **options)
    same(got, wanted, rtol=1e-9, atol=1e-12)


def test_one_and_three_axes_are_convolved_backwards_too() -> None:
    line = Tensor.ones(1, 1, 3).conv_transpose2d(Tensor.ones(1, 1, 2))
    assert line.tolist() == [[[1, 2, 2, 1]]]
    assert Tensor.ones(1, 2, 3, 3, 3).conv_transpose2d(Tensor.ones(2, 4, 2, 2, 2)).shape == (
        1, 4, 4, 4, 4,
    )  # fmt: skip


def test_gradients_of_pooling_and_transposed_convolution() -> None:
    x, weight = distinct((1, 2, 2, 3)), distinct((2, 1, 2, 2), seed=1)
    check(lambda a, w: a.conv_transpose2d(w, stride=2, padding=1), x, weight)
    check(lambda a: a.max_pool2d(return_indices=True)[0], x)
    places = Tensor(x).max_pool2d(return_indices=True)[1]
    check(lambda a: a.max_unpool2d(places), distinct((1, 2, 1, 1)))
