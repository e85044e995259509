"""Regression tests: programs that once gave a wrong result, compared with NumPy."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from glassgrad import Tensor, nn

RNG = np.random.default_rng(20)


def uniform(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


@pytest.mark.parametrize("rows,columns", [(1000, 64), (256, 512), (128, 784), (64, 1)])
def test_the_weight_gradient_of_a_linear_layer_with_one_output(rows: int, columns: int) -> None:
    layer, x = nn.Linear(columns, 1), uniform(rows, columns)
    layer(Tensor(x)).sum().backward()
    np.testing.assert_allclose(layer.weight.grad.numpy()[0], x.sum(0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [64, 1000])
def test_gradients_of_an_outer_product(size: int) -> None:
    x, w = uniform(size, 1), uniform(1, size)
    tensors = [Tensor(array, requires_grad=True) for array in (x, w)]
    (tensors[0] @ tensors[1]).square().sum().backward()
    wanted = [2 * x * (w * w).sum(), 2 * w * (x * x).sum()]
    for tensor, gradient in zip(tensors, wanted, strict=True):
        np.testing.assert_allclose(tensor.grad.numpy(), gradient, rtol=1e-3)


@pytest.mark.parametrize("reduction", ["sum", "max", "min", "mean"])
@pytest.mark.parametrize("shape", [(1000, 64), (1000, 65), (96, 128), (40, 3, 64)])
def test_a_reduction_read_in_two_shapes(reduction: str, shape: tuple[int, ...]) -> None:
    x = uniform(*shape)
    total = getattr(Tensor(x), reduction)(0)
    column, double = total.unsqueeze(-1), total * 2
    Tensor.realize(total, column, double)
    wanted = getattr(x, reduction)(0)
    for found, value in ((total, wanted), (column, wanted[..., None]), (double, wanted * 2)):
        np.testing.assert_allclose(found.numpy(), value, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("batch", [64, 256])
def test_gradients_of_a_small_network(batch: int) -> None:
    sizes = [1, 64, 64, 1]
    layers = [nn.Linear(n, m) for n, m in pairwise(sizes)]
    x = uniform(batch, 1)
    y = Tensor(x)
    for layer in layers[:-1]:
        y = layer(y).relu()
    layers[-1](y).square().mean().backward()

    weights = [layer.weight.numpy().astype(np.float64) for layer in layers]
    values = [x.astype(np.float64)]
    for layer, weight in zip(layers, weights, strict=True):
        linear = values[-1] @ weight.T + layer.bias.numpy()
        values.append(linear if layer is layers[-1] else np.maximum(linear, 0))
    back = 2 * values[-1] / batch
    for i in reversed(range(len(layers))):
        found = layers[i].weight.grad.numpy()
        np.testing.assert_allclose(found, back.T @ values[i], rtol=1e-3, atol=1e-6)
        back = (back @ weights[i]) * (values[i] > 0)


@pytest.mark.parametrize("width", [2048])
def test_quantised_rows_under_a_norm_and_two_products(width: int) -> None:
    """One kernel has two stores of which the second reads the first."""
    codes = RNG.integers(0, 255, (100, width // 32, 18), np.uint8)[:, :, None, 2:]
    scale, weight = uniform(100, width // 32, 1, 1), uniform(width, width) / width
    rows = np.arange(32, dtype=np.int32)

    def norm(x: Tensor) -> Tensor:
        return x * (x * x).mean(-1, keepdim=True)

    shifts = Tensor((0, 4)).cast("uint8").reshape(2, 1)
    w = Tensor(weight).realize()
    i = Tensor(rows).realize()
    x = (((Tensor(codes)[i] >> shifts) & 15).float() * Tensor(scale).realize()[i]).flatten(1)
    x = x + norm(x) @ w
    found = (x + norm(x) @ w).numpy()

    nibbles = (codes[rows] >> np.array([[0], [4]], np.uint8)) & 15
    y = (nibbles * scale[rows].astype(np.float64)).reshape(32, -1)
    for _ in range(2):
        y = y + (y * (y * y).mean(-1, keepdims=True)) @ weight
    np.testing.assert_allclose(found, y, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("shape", [(792, 4096), (100, 3050)])
def test_log_softmax_together_with_its_gradient(shape: tuple[int, int]) -> None:
    array, factor = uniform(*shape), uniform(*shape)
    x = Tensor(array, requires_grad=True)
    y = x.log_softmax()
    (y * Tensor(factor)).sum().backward()
    Tensor.realize(y, x.grad)
    wanted = array - np.log(np.exp(array.astype(np.float64)).sum(-1, keepdims=True))
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-4, atol=1e-5)
    gradient = factor - np.exp(wanted) * factor.sum(-1, keepdims=True, dtype=np.float64)
    np.testing.assert_allclose(x.grad.numpy(), gradient, rtol=1e-3, atol=1e-5)


def test_a_variance_over_the_outer_and_inner_axes_of_a_permutation() -> None:
    x = uniform(2, 22, 16, 3200)
    found = Tensor(x).permute(1, 2, 3, 0).var((0, 3)).numpy()
    wanted = x.astype(np.float64).transpose(1, 2, 3, 0).var((0, 3), ddof=1)
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


def test_a_gather_from_an_axis_of_one_element() -> None:
    one = Tensor([1.0, 2.0]).realize().sum(0, keepdim=True)
    found = Tensor.stack(one, dim=0).gather(0, Tensor([[0], [0]]).realize())
    assert found.tolist() == [[3.0], [3.0]]


@pytest.mark.parametrize("value", [3.5, -1.0])
def test_a_gradient_that_is_a_constant(value: float) -> None:
    w = Tensor(value)
    (w + 1.0).backward()
    assert w.grad.item() == 1.0


@pytest.mark.parametrize("size,channels", [(64, 64), (32, 16), (17, 3)])
def test_a_transposed_convolution_with_stride_2(size: int, channels: int) -> None:
    x, w = uniform(1, channels, size, size), uniform(channels, 4, 4, 4)
    found = Tensor(x).conv_transpose2d(Tensor(w), stride=2, padding=1).numpy()
    wanted = np.zeros((1, 4, 2 * size + 2, 2 * size + 2))
    for i in range(4):
        for j in range(4):
            part = np.einsum("nchw,co->nohw", x, w[:, :, i, j])
            wanted[:, :, i : i + 2 * size : 2, j : j + 2 * size : 2] += part
    np.testing.assert_allclose(found, wanted[:, :, 1:-1, 1:-1], rtol=1e-3, atol=1e-4)
