"""Convolutions against PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glassgrad import Tensor, nn
from glassgrad.base.errors import ShapeError

PLACES = {1: (11,), 2: (9, 10), 3: (5, 6, 7)}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"stride": 2, "padding": 1},
    {"dilation": 2, "groups": 2, "bias": False},
    {"padding": "same"},
    {"padding": "same", "dilation": 2},
    {"padding": "valid", "stride": 2},
    {"padding": 2, "padding_mode": "reflect"},
    {"padding": "same", "padding_mode": "circular", "dilation": 2},
    {"padding": 1, "padding_mode": "replicate", "stride": 2, "groups": 2},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolution_equals_pytorch(axes: int, options: dict[str, Any]) -> None:
    from support.references.torch_layers import check_layer, torch

    name = f"Conv{axes}d"
    pair = [getattr(module, name)(4, 6, 3, **options) for module in (torch.nn, nn)]
    check_layer(*pair, (2, 4, *PLACES[axes]))


@pytest.mark.parametrize(
    "options",
    [{}, {"stride": 2, "padding": 1, "output_padding": 1}, {"dilation": 2, "groups": 2}],
    ids=str,
)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_transposed_convolution_equals_pytorch(axes: int, options: dict[str, Any]) -> None:
    from support.references.torch_layers import check_layer, torch

    name = f"ConvTranspose{axes}d"
    pair = [getattr(module, name)(4, 6, 3, **options) for module in (torch.nn, nn)]
    check_layer(*pair, (2, 4, *PLACES[axes]))


@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_an_even_kernel_keeps_the_size_too() -> None:
    from support.references.torch_layers import check_layer, torch

    pair = [module.Conv2d(2, 3, (2, 4), padding="same") for module in (torch.nn, nn)]
    check_layer(*pair, (1, 2, 5, 6))


def test_convolution_weights_are_initialized_as_in_pytorch() -> None:
    Tensor.manual_seed(0)
    plain, turned = nn.Conv2d(64, 32, 3).weight, nn.ConvTranspose2d(64, 32, 3).weight
    assert np.abs(plain.numpy()).max() == pytest.approx((64 * 9) ** -0.5, rel=1e-2)
    assert np.abs(turned.numpy()).max() == pytest.approx((32 * 9) ** -0.5, rel=1e-2)


def test_values_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match="3 and out_channels 4 must be divisible by groups 2"):
        nn.Conv2d(3, 4, 1, groups=2)
    with pytest.raises(ShapeError, match="needs stride 1"):
        nn.Conv2d(3, 4, 1, stride=2, padding="same")
    with pytest.raises(ValueError, match='"same" or "valid", not \'full\''):
        nn.Conv2d(3, 4, 1, padding="full")
    with pytest.raises(ValueError, match="must be a number, not 'same'"):
        nn.ConvTranspose2d(3, 4, 1, padding="same")  # type: ignore[arg-type]


def test_convolutions_equal_their_definitions() -> None:
    """Loops over all windows; for the transpose, loops that scatter every input."""
    x = np.random.default_rng(0).standard_normal((1, 2, 5, 6))
    layer, turned = nn.Conv2d(2, 3, (2, 3)), nn.ConvTranspose2d(2, 3, (2, 3), bias=False)
    weight, bias = layer.weight.numpy(), layer.bias.numpy()
    wanted = np.zeros((1, 3, 4, 4)) + bias[None, :, None, None]
    spread = np.zeros((1, 3, 6, 8))
    for i in range(2):
        for j in range(3):
            wanted += np.einsum("bcyx,oc->boyx", x[..., i : i + 4, j : j + 4], weight[:, :, i, j])
            copy = np.einsum("bcyx,co->boyx", x, turned.weight.numpy()[:, :, i, j])
            spread[..., i : i + 5, j : j + 6] += copy
    np.testing.assert_allclose(layer(Tensor(x)).numpy(), wanted, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(turned(Tensor(x)).numpy(), spread, rtol=1e-9, atol=1e-12)


def test_unequal_paddings_are_filled_with_the_image() -> None:
    from support.references.torch_layers import check_layer, torch

    options: dict[str, Any] = {"padding": (2, 1), "padding_mode": "reflect"}
    pair = [module.Conv2d(2, 3, 3, **options) for module in (torch.nn, nn)]
    check_layer(*pair, (1, 2, 5, 6))


def test_an_unknown_padding_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="padding_mode is one of"):
        nn.Conv2d(2, 3, 3, padding=1, padding_mode="mirror")
