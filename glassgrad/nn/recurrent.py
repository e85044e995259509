"""LSTMCell and GRUCell: one step of a sequence and a hidden state -> the next hidden state."""

from __future__ import annotations

from glassgrad.nn.initial import uniform
from glassgrad.tensor.tensor import Tensor


class _Cell:
    """Input and hidden weights of several gates."""

    gates: int

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        rows = self.gates * hidden_size
        self.hidden_size = hidden_size
        self.weight_ih = uniform(rows, input_size, fan_in=hidden_size)
        self.weight_hh = uniform(rows, hidden_size, fan_in=hidden_size)
        self.bias_ih = uniform(rows, fan_in=hidden_size) if bias else None
        self.bias_hh = uniform(rows, fan_in=hidden_size) if bias else None

    def _zero_state(self, x: Tensor) -> Tensor:
        """The hidden state before the first step."""
        shape = (*x.shape[:-1], self.hidden_size)
        return Tensor.zeros(*shape, dtype=x.dtype, device=x.device, requires_grad=False)

    def _products(self, x: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        from_input = x.linear(self.weight_ih.transpose(), self.bias_ih)
        return from_input, hidden.linear(self.weight_hh.transpose(), self.bias_hh)


class LSTMCell(_Cell):
    """One LSTM step: (hidden, cell) -> (hidden, cell).

    >>> hidden, cell = LSTMCell(3, 5)(Tensor.ones(2, 3))
    >>> hidden.shape, cell.shape
    ((2, 5), (2, 5))
    """

    gates = 4

    def __call__(self, x: Tensor, hc: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        hidden, cell = (self._zero_state(x), self._zero_state(x)) if hc is None else hc
        from_input, from_hidden = self._products(x, hidden)
        input_gate, forget, new, output = (from_input + from_hidden).chunk(4, dim=-1)
        cell = forget.sigmoid() * cell + input_gate.sigmoid() * new.tanh()
        return (output.sigmoid() * cell.tanh()).contiguous(), cell.contiguous()


class GRUCell(_Cell):
    """One GRU step: hidden -> hidden.

    >>> GRUCell(3, 5)(Tensor.ones(2, 3)).shape
    (2, 5)
    """

    gates = 3

    def __call__(self, x: Tensor, hidden: Tensor | None = None) -> Tensor:
        hidden = self._zero_state(x) if hidden is None else hidden
        from_input, from_hidden = self._products(x, hidden)
        reset, update, new = from_input.chunk(3, dim=-1)
        hidden_reset, hidden_update, hidden_new = from_hidden.chunk(3, dim=-1)
        update = (update + hidden_update).sigmoid()
        new = (new + (reset + hidden_reset).sigmoid() * hidden_new).tanh()
        return (new * (1 - update) + hidden * update).contiguous()
