"""Linear, Embedding and Dropout."""

from __future__ import annotations

from glassgrad.nn.initial import uniform
from glassgrad.tensor.extension import axis_of, check_index, checked_index, take_rows
from glassgrad.tensor.tensor import Tensor


class Linear:
    """x @ weight.T + bias.

    >>> Linear(3, 4)(Tensor.ones(2, 3)).shape
    (2, 4)
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        self.weight = uniform(out_features, in_features, fan_in=in_features)
        self.bias = uniform(out_features, fan_in=in_features) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        return x.linear(self.weight.transpose(), self.bias)


class Embedding:
    """Rows of a table, by index. The row `padding_idx` starts as zeros and is not trained.

    >>> Embedding(10, 4)(Tensor([[1, 2, 3]])).shape
    (1, 3, 4)
    """

    def __init__(self, vocab_size: int, embed_size: int, padding_idx: int | None = None) -> None:
        self.weight = Tensor.randn(vocab_size, embed_size)
        self.padding_idx = padding_idx
        if padding_idx is not None:
            self.padding_idx = axis_of(padding_idx, vocab_size, "padding_idx")
            is_kept = Tensor.arange(vocab_size).ne(self.padding_idx).unsqueeze(1)
            self.weight = is_kept.where(self.weight, 0.0).is_param_()

    def __call__(self, idx: Tensor) -> Tensor:
        check_index(idx)
        # Not weight[idx]: a negative index is a mistake, not a row counted from the end.
        rows = take_rows(
            self.weight, checked_index(idx, int(self.weight.shape[0]), 0, can_wrap=False)
        )
        if self.padding_idx is None:
            return rows
        return idx.ne(self.padding_idx).unsqueeze(-1).where(rows, rows.detach())


class Dropout:
    """In training mode, zeroes elements with probability p and scales the others by 1 / (1 - p).

    >>> Dropout(0.5)(Tensor.ones(3)).tolist()
    [1.0, 1.0, 1.0]
    """

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, x: Tensor) -> Tensor:
        return x.dropout(self.p)
