"""Linear, Embedding and Dropout."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad import Tensor
from glassgrad.base.errors import ShapeError
from glassgrad.nn import Dropout, Embedding, Linear
from glassgrad.tensor.lazy.deferred import expand_deferred


@pytest.mark.parametrize("bias", [True, False])
def test_linear_equals_pytorch(bias: bool) -> None:
    from support.references.torch_layers import check_layer, torch

    check_layer(torch.nn.Linear(5, 3, bias=bias), Linear(5, 3, bias=bias), (2, 4, 5))


def test_linear_multiplies_and_adds() -> None:
    layer = Linear(2, 3)
    x = Tensor([[1.0, 2.0]])
    wanted = x @ layer.weight.T + layer.bias
    found = layer(x)
    assert found.shape == (1, 3)
    expand_deferred()
    assert found.uop is wanted.uop


def test_linear_weights_are_initialized_as_in_pytorch() -> None:
    Tensor.manual_seed(0)
    weight = Linear(400, 500).weight.numpy()
    assert np.abs(weight).max() == pytest.approx(1 / 20, rel=1e-3)
    assert weight.std() == pytest.approx(1 / 20 / np.sqrt(3), rel=1e-2)


def test_an_input_of_another_width_is_refused() -> None:
    with pytest.raises(ShapeError, match="4 columns meet 3 rows"):
        Linear(3, 2)(Tensor.ones(1, 4))


def test_embedding_gives_rows_and_adds_up_their_gradients() -> None:
    layer = Embedding(5, 2)
    rows = np.array([[4, 0], [4, 1]])
    found = layer(Tensor(rows))
    np.testing.assert_array_equal(found.numpy(), layer.weight.numpy()[rows])
    found.sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.tolist() == [[1, 1], [1, 1], [0, 0], [0, 0], [2, 2]]


@pytest.mark.parametrize("padding", [2, -1])
def test_the_padding_row_equals_pytorch(padding: int) -> None:
    from support.references.torch_layers import torch, with_weights_of

    theirs = torch.nn.Embedding(5, 3, padding_idx=padding)
    ours = Embedding(5, 3, padding_idx=padding)
    assert ours.weight.numpy()[padding].tolist() == [0, 0, 0]
    assert ours.weight.numpy()[0].all()
    with_weights_of(theirs, ours)
    rows = np.array([[2, 4, 0], [2, 1, 4]])
    found, wanted = ours(Tensor(rows)), theirs(torch.tensor(rows))
    np.testing.assert_array_equal(found.numpy(), wanted.detach().numpy())
    found.square().sum().backward()
    wanted.square().sum().backward()
    assert ours.weight.grad is not None
    np.testing.assert_allclose(ours.weight.grad.numpy(), theirs.weight.grad.numpy(), rtol=1e-6)


def test_an_invalid_padding_row_is_refused() -> None:
    with pytest.raises(IndexError, match="padding_idx 5 is out of range"):
        Embedding(5, 3, padding_idx=5)


@pytest.mark.parametrize("row", [-1, -100, 5])
def test_rows_out_of_range_are_refused(row: int) -> None:
    layer = Embedding(5, 2)
    for rows in (Tensor([0, row]), Tensor([1, row + 1]) - 1):
        with pytest.raises(IndexError, match=f"index {row} is out of range for axis 0 of size 5"):
            layer(rows).realize()


def test_rows_are_ints() -> None:
    with pytest.raises(TypeError, match="tensors index by ints, not by float32"):
        Embedding(5, 2)(Tensor([1.0]))


def test_embedding_weights_are_normal() -> None:
    Tensor.manual_seed(0)
    weight = Embedding(300, 200).weight.numpy()
    assert abs(weight.mean()) < 0.02
    assert weight.std() == pytest.approx(1, abs=0.02)


def test_dropout_drops_in_training_only() -> None:
    x = Tensor.ones(2000)
    assert Dropout(0.25)(x).numpy().min() == 1
    with Tensor.train():
        found = Dropout(0.25)(x).numpy()
    assert set(found.tolist()) == {0.0, np.float32(4 / 3).item()}
    assert 0.2 < (found == 0).mean() < 0.3
