"""Norms against PyTorch's, and BatchNorm's running statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glassgrad import Tensor, TinyJit, dtypes, nn
from glassgrad.base.errors import ShapeError
from glassgrad.nn.optim import SGD
from glassgrad.nn.state import get_parameters


def perturbed(theirs: Any) -> Any:
    """Their layer with weights that are not all the same."""
    from support.references.torch_layers import torch

    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter)
    return theirs


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("shape", [4, (3, 4)], ids=str)
def test_layernorm_equals_pytorch(shape: Any, affine: bool) -> None:
    from support.references.torch_layers import check_layer, torch

    theirs = torch.nn.LayerNorm(shape, elementwise_affine=affine)
    check_layer(perturbed(theirs), nn.LayerNorm(shape, elementwise_affine=affine), (2, 3, 4))


@pytest.mark.parametrize("affine", [True, False])
def test_groupnorm_equals_pytorch(affine: bool) -> None:
    from support.references.torch_layers import check_layer, torch

    theirs = torch.nn.GroupNorm(2, 6, affine=affine)
    check_layer(perturbed(theirs), nn.GroupNorm(2, 6, affine=affine), (2, 6, 3, 4))


def test_instancenorm_equals_pytorch() -> None:
    from support.references.torch_layers import check_layer, torch

    theirs = torch.nn.InstanceNorm2d(3, affine=True)
    check_layer(perturbed(theirs), nn.InstanceNorm(3), (2, 3, 4, 5), rtol=1e-4)


def test_rmsnorm_equals_pytorch() -> None:
    from support.references.torch_layers import check_layer, torch

    check_layer(perturbed(torch.nn.RMSNorm(6, eps=1e-6)), nn.RMSNorm(6), (2, 5, 6))
    check_layer(perturbed(torch.nn.RMSNorm((5, 6), eps=1e-6)), nn.RMSNorm((5, 6)), (2, 5, 6))


def test_rmsnorm_of_half_floats_does_not_overflow() -> None:
    x = Tensor([[1000.0, -1000.0]]).cast(dtypes.float16)
    assert nn.RMSNorm(2, elementwise_affine=False)(x).tolist() == [[1.0, -1.0]]


def test_layernorm2d_normalises_channels() -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
    centred = x - x.mean(1, keepdims=True)
    wanted = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(nn.LayerNorm2d(3)(Tensor(x)).numpy(), wanted, atol=1e-5)


def test_batchnorm_in_training_equals_pytorch() -> None:
    from support.references.torch_layers import check_layer, torch

    theirs, ours = perturbed(torch.nn.BatchNorm2d(3)), nn.BatchNorm(3)
    with Tensor.train():
        check_layer(theirs, ours, (4, 3, 5, 5), rtol=1e-4)
    for name in ("running_mean", "running_var"):
        wanted = getattr(theirs, name).numpy()
        np.testing.assert_allclose(getattr(ours, name).numpy(), wanted, rtol=1e-5, atol=1e-6)
    assert ours.num_batches_tracked.item() == 1


def test_batchnorm_in_evaluation_uses_the_running_statistics() -> None:
    from support.references.torch_layers import check_layer, torch

    theirs = perturbed(torch.nn.BatchNorm2d(3)).eval()
    theirs.running_mean.normal_()
    theirs.running_var.uniform_(0.5, 2)
    check_layer(theirs, nn.BatchNorm(3), (4, 3, 5, 5))


def test_batchnorm_may_keep_the_means_of_all_batches() -> None:
    from support.references.torch_layers import torch

    theirs, ours = torch.nn.BatchNorm1d(3, momentum=None), nn.BatchNorm(3, momentum=None)
    random = np.random.default_rng(0)
    with Tensor.train():
        for _ in range(3):
            x = random.standard_normal((6, 3)).astype(np.float32)
            theirs(torch.tensor(x))
            ours(Tensor(x)).realize(ours.running_mean, ours.running_var)
    for name in ("running_mean", "running_var"):
        wanted = getattr(theirs, name).numpy()
        np.testing.assert_allclose(getattr(ours, name).numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_batchnorm_without_running_statistics_always_uses_the_batch() -> None:
    layer = nn.BatchNorm(3, affine=False, track_running_stats=False)
    x = Tensor(np.random.default_rng(0).standard_normal((64, 3)).astype(np.float32) * 7 + 2)
    found = layer(x).numpy()
    np.testing.assert_allclose(found.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(found.std(0), 1, atol=1e-4)
    assert not get_parameters(layer)


def test_a_captured_step_keeps_the_running_statistics() -> None:
    layer = nn.BatchNorm(2)
    optimizer = SGD(get_parameters(layer), lr=0.0)

    @TinyJit
    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = layer(x).square().sum()
        loss.backward()
        return loss.realize(*optimizer.schedule_step())

    random = np.random.default_rng(0)
    mean = np.zeros(2)
    with Tensor.train():
        for _ in range(5):
            x = random.standard_normal((8, 2)).astype(np.float32)
            step(Tensor(x))
            mean = 0.9 * mean + 0.1 * x.mean(0)
    np.testing.assert_allclose(layer.running_mean.numpy(), mean, rtol=1e-5, atol=1e-6)
    assert layer.num_batches_tracked.item() == 5


def test_values_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match="normalized_shape \\(4,\\) does not match"):
        nn.LayerNorm(4)(Tensor.ones(2, 3))
    with pytest.raises(ShapeError, match="normalized_shape \\(3, 4\\) does not match"):
        nn.RMSNorm((3, 4))(Tensor.ones(2, 4))
    with pytest.raises(ShapeError, match="num_channels 4 is not divisible by num_groups 3"):
        nn.GroupNorm(3, 4)


def test_norms_equal_their_definitions() -> None:
    x = np.random.default_rng(0).standard_normal((2, 6, 3, 4))

    def normal(values: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        centred = values - values.mean(axes, keepdims=True)
        return centred / np.sqrt((centred**2).mean(axes, keepdims=True) + 1e-5)

    given = Tensor(x)
    cases = [
        (nn.LayerNorm(4), normal(x, (3,))),
        (nn.LayerNorm((3, 4)), normal(x, (2, 3))),
        (nn.GroupNorm(2, 6), normal(x.reshape(2, 2, 3, 3, 4), (2, 3, 4)).reshape(x.shape)),
        (nn.InstanceNorm(6), normal(x, (2, 3))),
        (nn.BatchNorm(6, track_running_stats=False), normal(x, (0, 2, 3))),
        (nn.RMSNorm(4), x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)),
    ]
    for layer, wanted in cases:
        np.testing.assert_allclose(layer(given).numpy(), wanted, rtol=1e-9, atol=1e-12)
        layer.weight.assign(layer.weight * 2)
        np.testing.assert_allclose(layer(given).numpy(), 2 * wanted, rtol=1e-9, atol=1e-12)
