"""Mutation: a function and a change of what it reads; and kinds of values to change."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from glassgrad import Tensor, nn

Function = Callable[[Tensor], Any]
MUTATIONS: dict[str, Callable[[], Mutation]] = {}


class Mutation(NamedTuple):
    """`change` makes the function compute something else."""

    function: Function
    change: Callable[[], None]


def mutation(build: Callable[[], tuple[Function, Callable[[], None]]]) -> Any:
    """Register a mutation under the name of its function."""
    MUTATIONS[build.__name__] = lambda: Mutation(*build())
    return build


# ---------------------------------------------------------------------- kinds of values


class Color(Enum):
    RED = 2
    BLUE = 5


class Scale:
    """An object that is called."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.factor


def double(x: Tensor) -> Tensor:
    return x * 2


def triple(x: Tensor) -> Tensor:
    return x * 3


class Object:
    value: Any = None

    def __init__(self, value: Any) -> None:
        self.value = value


@dataclass
class Data:
    value: Any = None


def row(*values: float) -> Tensor:
    return Tensor(np.array(values, np.float32)).realize()


def identity_layer(factor: float) -> nn.Linear:
    layer = nn.Linear(2, 2, bias=False)
    layer.weight = row(factor, 0, 0, factor).reshape(2, 2).realize()
    return layer


KINDS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "int": lambda: (2, 5),
    "float": lambda: (2.0, 5.0),
    "bool": lambda: (True, False),
    "int and float": lambda: (2, 2.5),
    "text": lambda: ("a", "b"),
    "none": lambda: (None, 3.0),
    "tuple": lambda: ((1, 2), (1, 4)),
    "list": lambda: ([1, 2], [1, 4]),
    "set": lambda: ({1, 2}, {1, 4}),
    "dict": lambda: ({"k": 2}, {"k": 7}),
    "numpy number": lambda: (np.float32(2), np.float32(5)),
    "numpy array": lambda: (np.array([2.0, 3.0]), np.array([5.0, 6.0])),
    "fraction": lambda: (Fraction(1, 2), Fraction(1, 4)),
    "decimal": lambda: (Decimal(2), Decimal(5)),
    "enum": lambda: (Color.RED, Color.BLUE),
    "function": lambda: (double, triple),
    "lambda": lambda: (lambda x: x * 2, lambda x: x * 3),
    "callable object": lambda: (Scale(2.0), Scale(5.0)),
    "partial": lambda: (functools.partial(scaled, k=2), functools.partial(scaled, k=3)),
    "class": lambda: (type("A", (), {"k": 2}), type("B", (), {"k": 5})),
    "tensor": lambda: (row(2, 3), row(5, 6)),
    "lazy tensor": lambda: (row(2, 3) * 2, row(5, 6) * 2),
    "layer": lambda: (identity_layer(2.0), identity_layer(5.0)),
    "slice": lambda: (slice(0, 1), slice(1, 2)),
    "range": lambda: (range(2), range(5)),
}


def scaled(x: Tensor, k: float) -> Tensor:
    return x * k


def use(x: Tensor, value: Any) -> Tensor:
    """Compute something that depends on a value of any kind."""
    if value is None:
        return x * 1.25
    if isinstance(value, str):
        return x * (2.0 if value == "a" else 3.0)
    if isinstance(value, Enum):
        return x * value.value
    if isinstance(value, (tuple, list, set, range)):
        return x * float(sum(value))
    if isinstance(value, dict):
        return x * value["k"]
    if isinstance(value, slice):
        return x[value] * 2
    if isinstance(value, type):
        return x * value.k  # type: ignore[attr-defined]
    if isinstance(value, np.ndarray):
        return x * Tensor(value.astype(np.float32))
    if isinstance(value, (Fraction, Decimal)):
        return x * float(value)
    if isinstance(value, np.generic):
        return x * value.item()
    if callable(value):
        return value(x)
    return x * value


FEW_KINDS = ("int", "tensor", "function", "layer", "list")
