"""Cells against PyTorch's, and a sequence that is learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glassgrad import Tensor
from glassgrad.nn import GRUCell, LSTMCell


class Shown:
    """The hidden value and the cell of an LSTM beside each other."""

    def __init__(self, cell: Any, join: Any) -> None:
        self.cell, self.join = cell, join

    def __call__(self, x: Any, hidden: Any, cell: Any) -> Any:
        return self.join(*self.cell(x, (hidden, cell)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cell, name)


@pytest.mark.parametrize("bias", [True, False])
def test_an_lstm_cell_equals_pytorch(bias: bool) -> None:
    from support.references.torch_layers import check_layer, torch

    theirs = Shown(torch.nn.LSTMCell(3, 4, bias=bias), lambda h, c: torch.cat((h, c), 1))
    cell = LSTMCell(3, 4, bias=bias)

    class Ours:
        def __init__(self) -> None:
            vars(self).update(vars(cell))

        def __call__(self, x: Tensor, hidden: Tensor, memory: Tensor) -> Tensor:
            return Tensor.cat(*cell(x, (hidden, memory)), dim=1)

    check_layer(theirs, Ours(), (2, 3), (2, 4), (2, 4))


@pytest.mark.parametrize("bias", [True, False])
def test_a_gru_cell_equals_pytorch(bias: bool) -> None:
    from support.references.torch_layers import check_layer, torch

    check_layer(torch.nn.GRUCell(3, 4, bias=bias), GRUCell(3, 4, bias=bias), (2, 3), (2, 4))


def test_the_initial_state_of_cells_is_zero() -> None:
    x = Tensor(np.ones((2, 3), np.float32))
    nothing = Tensor.zeros(2, 4)
    lstm, gru = LSTMCell(3, 4), GRUCell(3, 4)
    assert lstm(x)[0].tolist() == lstm(x, (nothing, nothing))[0].tolist()
    assert gru(x).tolist() == gru(x, nothing).tolist()


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def values_of(cell: Any) -> list[np.ndarray]:
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return [getattr(cell, name).numpy().astype(np.float64) for name in names]


def test_an_lstm_cell_equals_its_definition() -> None:
    random = np.random.default_rng(0)
    x, h, c = (random.standard_normal(shape) for shape in ((2, 3), (2, 4), (2, 4)))
    cell = LSTMCell(3, 4)
    weight_ih, weight_hh, bias_ih, bias_hh = values_of(cell)
    gates = x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh
    i, f, g, o = np.split(gates, 4, axis=1)
    wanted_c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    found_h, found_c = cell(Tensor(x), (Tensor(h), Tensor(c)))
    np.testing.assert_allclose(found_c.numpy(), wanted_c, rtol=1e-6)
    np.testing.assert_allclose(found_h.numpy(), sigmoid(o) * np.tanh(wanted_c), rtol=1e-6)


def test_a_gru_cell_equals_its_definition() -> None:
    random = np.random.default_rng(0)
    x, h = random.standard_normal((2, 3)), random.standard_normal((2, 4))
    cell = GRUCell(3, 4)
    weight_ih, weight_hh, bias_ih, bias_hh = values_of(cell)
    seen = np.split(x @ weight_ih.T + bias_ih, 3, axis=1)
    past = np.split(h @ weight_hh.T + bias_hh, 3, axis=1)
    r, z = sigmoid(seen[0] + past[0]), sigmoid(seen[1] + past[1])
    n = np.tanh(seen[2] + r * past[2])
    np.testing.assert_allclose(cell(Tensor(x), Tensor(h)).numpy(), (1 - z) * n + z * h, rtol=1e-6)
