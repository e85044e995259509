"""LSTMCell, GRUCell: one step of a sequence and what is remembered of it -> the next memory."""

from __future__ import annotations

from glassgrad.nn.initial import uniform
from glassgrad.tensor.tensor import Tensor


class _Cell:
    """Weights for some gates, each a product of the input and one of what is remembered."""

    gates: int

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        rows = self.gates * hidden_size
        self.hidden_size = hidden_size
        self.weight_ih = uniform(rows, input_size, fan_in=hidden_size)
        self.weight_hh = uniform(rows, hidden_size, fan_in=hidden_size)
        self.bias_ih = uniform(rows, fan_in=hidden_size) if bias else None
        self.bias_hh = uniform(rows, fan_in=hidden_size) if bias else None

    def _start(self, x: Tensor) -> Tensor:
        """Nothing is remembered yet."""
        shape = (*x.shape[:-1], self.hidden_size)
        return Tensor.zeros(*shape, dtype=x.dtype, device=x.device, requires_grad=False)

    def _products(self, x: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        seen = x.linear(self.weight_ih.transpose(), self.bias_ih)
        return seen, hidden.linear(self.weight_hh.transpose(), self.bias_hh)


class LSTMCell(_Cell):
    """A step with a hidden value and a cell, behind gates for input, forgetting and output.

    >>> hidden, cell = LSTMCell(3, 5)(Tensor.ones(2, 3))
    >>> hidden.shape, cell.shape
    ((2, 5), (2, 5))
    """

    gates = 4

    def __call__(self, x: Tensor, hc: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        hidden, cell = (self._start(x), self._start(x)) if hc is None else hc
        seen, remembered = self._products(x, hidden)
        take, forget, new, show = (seen + remembered).chunk(4, dim=-1)
        cell = forget.sigmoid() * cell + take.sigmoid() * new.tanh()
        return (show.sigmoid() * cell.tanh()).contiguous(), cell.contiguous()


class GRUCell(_Cell):
    """A step with one hidden value, behind gates for forgetting and for keeping.

    >>> GRUCell(3, 5)(Tensor.ones(2, 3)).shape
    (2, 5)
    """

    gates = 3

    def __call__(self, x: Tensor, hidden: Tensor | None = None) -> Tensor:
        hidden = self._start(x) if hidden is None else hidden
        seen, remembered = self._products(x, hidden)
        forget, keep, new = seen.chunk(3, dim=-1)
        past_forget, past_keep, past_new = remembered.chunk(3, dim=-1)
        keep = (keep + past_keep).sigmoid()
        new = (new + (forget + past_forget).sigmoid() * past_new).tanh()
        return (new * (1 - keep) + hidden * keep).contiguous()
