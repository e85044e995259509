"""Matrix products against NumPy; convolutions and pooling against plain loops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.values.arrays import numbers, same

from glassgrad import Tensor, dtypes

ON_BOTH_BACKENDS = True


@st.composite
def matrices(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes that can be multiplied, with broadcast batch axes."""
    m, k, n = (draw(st.sampled_from((1, 2, 3, 5))) for _ in "mkn")
    batch = draw(st.lists(st.sampled_from((1, 2, 3)), max_size=2))
    left = [1 if draw(st.booleans()) else size for size in batch]
    right = [1 if draw(st.booleans()) else size for size in batch][draw(st.integers(0, 1)) :]
    one = (k,) if not left and draw(st.booleans()) else (*left, m, k)
    other = (k,) if not right and draw(st.booleans()) else (*right, k, n)
    return one, other


@given(matrices(), st.sampled_from(("float32", "float64", "int32")))
def test_matmul_agrees_with_numpy(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], dtype: str
) -> None:
    x, y = numbers(shapes[0], dtype), numbers(shapes[1], dtype, seed=1)
    same(Tensor(x) @ Tensor(y), np.asarray(x @ y), rtol=1e-6)
    same(Tensor(y).matmul(Tensor(x), reverse=True), np.asarray(x @ y), rtol=1e-6)


def test_matmul_promotes_and_accumulates_halves_in_float32() -> None:
    x = np.full((1, 4096), 0.1, np.float16)
    y = np.ones((4096, 1), np.float16)
    got = Tensor(x) @ Tensor(y)
    assert got.dtype is dtypes.float16
    assert got.item() == pytest.approx(4096 * float(np.float16(0.1)), rel=1e-3)
    assert (Tensor.ones(2, 2, dtype="int32") @ Tensor.ones(2, 2)).dtype is dtypes.float32
    assert Tensor(x).dot(Tensor(y), dtype="float32").dtype is dtypes.float32


def test_linear_adds_a_bias_and_multiplies_by_vectors() -> None:
    x, w, b = numbers((2, 3)), numbers((3, 4), seed=1), numbers((4,), seed=2)
    same(Tensor(x).linear(Tensor(w), Tensor(b)), x @ w + b, rtol=1e-6)
    same(Tensor(x).linear(Tensor(w[:, 0])), x * w[:, 0])
    assert Tensor(x).linear(Tensor(w), Tensor(b), dtype="float64").dtype is dtypes.float64


def test_sequential_calls_layers_in_order() -> None:
    assert Tensor([1.0, -1.0]).sequential([Tensor.relu, lambda x: x + 1]).tolist() == [2, 1]


def convolve(
    x: np.ndarray, w: np.ndarray, groups: int, stride: int, dilation: int, padding: int
) -> np.ndarray:
    """Convolution by loops."""
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    out, per, kh, kw = w.shape
    oh = (x.shape[2] - dilation * (kh - 1) - 1) // stride + 1
    ow = (x.shape[3] - dilation * (kw - 1) - 1) // stride + 1
    y = np.zeros((x.shape[0], out, oh, ow))
    for o, i, j in itertools.product(range(out), range(oh), range(ow)):
        first = o // (out // groups) * per
        rows = slice(i * stride, i * stride + dilation * (kh - 1) + 1, dilation)
        columns = slice(j * stride, j * stride + dilation * (kw - 1) + 1, dilation)
        y[:, o, i, j] = (x[:, first : first + per, rows, columns] * w[o]).sum((1, 2, 3))
    return y


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize(
    ("stride", "dilation", "padding"), [(1, 1, 0), (1, 1, 1), (2, 1, 1), (1, 2, 2), (3, 2, 1)]
)
def test_conv2d_agrees_with_loops(groups: int, stride: int, dilation: int, padding: int) -> None:
    x, w = numbers((2, 4, 7, 6), "float64"), numbers((4, 4 // groups, 3, 2), "float64", seed=1)
    got = Tensor(x).conv2d(
        Tensor(w), groups=groups, stride=stride, dilation=dilation, padding=padding
    )
    same(got, convolve(x, w, groups, stride, dilation, padding), rtol=1e-12)


def test_conv2d_adds_a_bias_and_takes_padding_per_side() -> None:
    x, w = numbers((1, 1, 4, 4), "float64"), numbers((2, 1, 3, 3), "float64", seed=1)
    bias = np.array([1.0, -1.0])
    wide = np.pad(x, ((0, 0), (0, 0), (3, 4), (1, 2)))
    wanted = convolve(wide, w, 1, 1, 1, 0) + bias[None, :, None, None]
    same(Tensor(x).conv2d(Tensor(w), Tensor(bias), padding=(1, 2, 3, 4)), wanted, rtol=1e-12)


def test_conv2d_works_on_one_and_three_axes() -> None:
    x, w = numbers((1, 2, 5), "float64"), numbers((3, 2, 2), "float64", seed=1)
    wanted = convolve(x[:, :, None], w[:, :, None], 1, 1, 1, 0)[:, :, 0]
    same(Tensor(x).conv2d(Tensor(w)), wanted, rtol=1e-12)
    assert Tensor.ones(1, 2, 4, 5, 6).conv2d(Tensor.ones(3, 2, 2, 2, 2)).shape == (1, 3, 3, 4, 5)


def pooled(x: np.ndarray, kernel: int, stride: int, padding: int, name: str) -> np.ndarray:
    fill = {"max": -np.inf, "mean": 0}[name]
    x = np.pad(x, ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2), constant_values=fill)
    windows = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), (2, 3))
    return getattr(windows[:, :, ::stride, ::stride], name)((4, 5))


@pytest.mark.parametrize(("kernel", "stride", "padding"), [(2, 2, 0), (3, 1, 1), (3, 2, 1)])
def test_pooling_agrees_with_windows(kernel: int, stride: int, padding: int) -> None:
    x = numbers((2, 3, 7, 6), "float64")
    tensor = Tensor(x)
    got = tensor.max_pool2d(kernel, stride, padding=padding)
    same(got, pooled(x, kernel, stride, padding, "max"))
    got = tensor.avg_pool2d(kernel, stride, padding=padding)
    same(got, pooled(x, kernel, stride, padding, "mean"), rtol=1e-12)


def test_pooling_of_ints_pads_with_the_smallest() -> None:
    x = Tensor([[[[-5, -6], [-7, -8]]]])
    assert x.max_pool2d(2, 1, padding=1).tolist() == [[[[-5, -5, -6], [-5, -5, -6], [-7, -7, -8]]]]


def test_average_pooling_can_leave_padding_out_of_the_count() -> None:
    x = Tensor.ones(1, 1, 2, 2)
    assert x.avg_pool2d(2, 1, padding=1, count_include_pad=False).tolist() == [[[[1] * 3] * 3]]
    assert x.avg_pool2d(2, 1, padding=1).tolist()[0][0][0] == [0.25, 0.5, 0.25]


def test_ceil_mode_keeps_the_last_window_if_it_starts_inside() -> None:
    x = Tensor.arange(5).float().reshape(1, 1, 1, 5)
    assert x.max_pool2d((1, 2)).tolist() == [[[[1, 3]]]]
    assert x.max_pool2d((1, 2), ceil_mode=True).tolist() == [[[[1, 3, 4]]]]
    assert x.avg_pool2d((1, 2), ceil_mode=True).tolist() == [[[[0.5, 2.5, 4]]]]
    assert x.max_pool2d((1, 2), 4, padding=(0, 1), ceil_mode=True).shape == (1, 1, 1, 2)
