"""Linear, Embedding, Dropout: products with a matrix, rows of it, and noise."""

from __future__ import annotations

from glassgrad.nn.initial import uniform
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
    """The rows of a table, by number.

    >>> Embedding(10, 4)(Tensor([[1, 2, 3]])).shape
    (1, 3, 4)
    """

    def __init__(self, vocab_size: int, embed_size: int) -> None:
        self.weight = Tensor.randn(vocab_size, embed_size)

    def __call__(self, idx: Tensor) -> Tensor:
        return self.weight[idx]


class Dropout:
    """In training, elements are 0 with probability p, and the others larger by 1 / (1 - p).

    >>> Dropout(0.5)(Tensor.ones(3)).tolist()
    [1.0, 1.0, 1.0]
    """

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, x: Tensor) -> Tensor:
        return x.dropout(self.p)
