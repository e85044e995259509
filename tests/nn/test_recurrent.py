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
def test_an_lstm_cell_is_pytorchs(bias: bool) -> None:
    from torch_models import check_layer, torch

    theirs = Shown(torch.nn.LSTMCell(3, 4, bias=bias), lambda h, c: torch.cat((h, c), 1))
    cell = LSTMCell(3, 4, bias=bias)

    class Ours:
        def __init__(self) -> None:
            vars(self).update(vars(cell))

        def __call__(self, x: Tensor, hidden: Tensor, memory: Tensor) -> Tensor:
            return Tensor.cat(*cell(x, (hidden, memory)), dim=1)

    check_layer(theirs, Ours(), (2, 3), (2, 4), (2, 4))


@pytest.mark.parametrize("bias", [True, False])
def test_a_gru_cell_is_pytorchs(bias: bool) -> None:
    from torch_models import check_layer, torch

    check_layer(torch.nn.GRUCell(3, 4, bias=bias), GRUCell(3, 4, bias=bias), (2, 3), (2, 4))


def test_cells_begin_with_nothing_remembered() -> None:
    x = Tensor(np.ones((2, 3), np.float32))
    nothing = Tensor.zeros(2, 4)
    lstm, gru = LSTMCell(3, 4), GRUCell(3, 4)
    assert lstm(x)[0].tolist() == lstm(x, (nothing, nothing))[0].tolist()
    assert gru(x).tolist() == gru(x, nothing).tolist()
