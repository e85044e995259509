"""Reductions, lookups and scatters of narrow floats are computed in float32 and rounded once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from glassgrad import Tensor, nn

NARROW = ("bfloat16", "float16", "fp8e4m3", "fp8e5m2")
ROWS = 100  # more than MIN_TABLE_ROWS: sums over one-hot values become scatters


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).integers(-8, 9, shape) / 4).astype(np.float32)


def random_indices(*shape: int) -> Tensor:
    return Tensor(np.random.default_rng(1).integers(0, ROWS, shape).astype(np.int32)).realize()


def assert_rounded_once(function: Callable[..., Tensor], dtype: str, *arrays: np.ndarray) -> None:
    narrow = [Tensor(array).cast(dtype).realize() for array in arrays]
    found = function(*narrow).realize()
    wanted = function(*[one.float().realize() for one in narrow]).cast(dtype)
    assert found.dtype is narrow[0].dtype
    np.testing.assert_array_equal(found.float().numpy(), wanted.float().numpy())


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reduce(dtype: str, reduce: str, include_self: bool) -> None:
    index = random_indices(3, 40)

    def scattered(x: Tensor, source: Tensor) -> Tensor:
        return x.scatter_reduce(1, index, source, reduce, include_self=include_self)

    assert_rounded_once(scattered, dtype, numbers(3, ROWS), numbers(3, 40, seed=2))


@pytest.mark.parametrize("dtype", NARROW)
def test_sums_and_maxima_of_masked_values(dtype: str) -> None:
    index = random_indices(40)
    mask = Tensor.arange(ROWS).reshape(ROWS, 1).eq(index)
    assert_rounded_once(lambda x: mask.where(x, 0).sum(1), dtype, numbers(40))
    lowest = -448.0 if dtype == "fp8e4m3" else -np.inf  # e4m3 has no infinity
    assert_rounded_once(lambda x: mask.where(x, lowest).max(1).maximum(-9), dtype, numbers(40))


@pytest.mark.parametrize("dtype", NARROW)
def test_gradients_of_lookups_and_broadcasts(dtype: str) -> None:
    index = random_indices(500)

    def gradients(weight: Tensor, bias: Tensor) -> Tensor:
        weight, bias = (x.clone().requires_grad_() for x in (weight, bias))
        (weight[index] * 0.25 + bias).float().sum().backward()
        return Tensor.cat(weight.grad, bias.grad.reshape(1, -1))

    assert_rounded_once(gradients, dtype, numbers(ROWS, 8), numbers(8))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_an_embedding_trains(dtype: str) -> None:
    layer = nn.Embedding(ROWS, 4)
    layer.weight = layer.weight.cast(dtype).realize().requires_grad_()
    index = random_indices(300)
    layer(index).float().sum().backward()
    counts = np.bincount(index.numpy(), minlength=ROWS)
    np.testing.assert_array_equal(layer.weight.grad.float().numpy()[:, 0], counts)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", ["logsumexp", "logcumsumexp", "softmax", "log_softmax", "var"])
def test_rows_whose_sums_overflow_fp8(dtype: str, name: str) -> None:
    assert_rounded_once(lambda x: getattr(x, name)(-1), dtype, numbers(2, 1963))


@pytest.mark.parametrize("dtype", NARROW)
def test_ties_of_a_maximum_share_the_gradient(dtype: str) -> None:
    x = Tensor(np.zeros(1024, np.float32)).cast(dtype).realize().requires_grad_()
    (x.max().float() * 256).backward()
    np.testing.assert_array_equal(x.grad.float().numpy(), np.full(1024, 0.25, np.float32))


@pytest.mark.parametrize("dtype", NARROW)
def test_attention_scores_are_float32(dtype: str) -> None:
    """A product of 1,963 terms overflows fp8."""
    x = Tensor(numbers(1, 1, 3, 1963)).cast(dtype).realize()
    found = x.scaled_dot_product_attention(x, x)
    assert np.isfinite(found.float().numpy()).all()


@pytest.mark.parametrize("dtype", NARROW)
def test_batchnorm_keeps_the_dtype_and_rounds_once(dtype: str) -> None:
    x = Tensor(numbers(64, 3, 4)).cast(dtype).realize()
    layer = nn.BatchNorm(3)
    for mode in (Tensor.train, Tensor.test):
        with mode():
            found, wanted = layer(x), layer(x.float())
            assert found.dtype is x.dtype
            wanted = wanted.cast(x.dtype).float().numpy()
            np.testing.assert_array_equal(found.float().numpy(), wanted)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("shape", [(1000, 64), (777, 65), (2048, 256), (3, 2000)])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_max_min_and_argmax_along_any_axis(
    dtype: str, shape: tuple[int, ...], axis: int | None
) -> None:
    """Maxima of columns are combined over blocks of rows, also in float32."""
    for name in ("max", "min", "argmax"):
        assert_rounded_once(
            lambda x, name=name: getattr(x, name)(axis).cast(x.dtype), dtype, numbers(*shape)
        )
