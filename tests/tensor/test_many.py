"""Graphs of thousands of nodes: few kernels, and no recursion."""

from __future__ import annotations

import numpy as np

from glassgrad import Tensor
from glassgrad.devices.python.device import python_target
from glassgrad.schedule import schedule
from glassgrad.tensor.lazy.deferred import expand_deferred


def test_a_model_of_two_thousand_tiny_ops_is_a_few_kinds_of_kernels() -> None:
    y = Tensor([1.0, 2.0])
    for _ in range(1000):
        y = ((y + 3) * 0.5).sin()
    made = schedule([y.uop], python_target())
    assert len(set(made.kernels)) <= 4
    assert len(made.kernels) <= 200


def test_layers_of_tiny_products_are_compiled_once() -> None:
    y, weight = Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([[0.1, 0.2], [0.3, 0.4]])
    for _ in range(300):
        y = (y @ weight).relu() + y.mean()
    expand_deferred()
    made = schedule([y.uop], python_target())
    assert len(set(made.kernels)) <= 12


def test_a_graph_of_fifty_thousand_ops_is_scheduled_without_recursion() -> None:
    y = Tensor(np.zeros(2, dtype=np.int32))
    for number in range(50_000):
        y = y + number % 7
    made = schedule([y.uop], python_target())
    assert len(made.kernels) <= 50_000 // 300
    x = Tensor([1.0])
    z = x
    for _ in range(20_000):
        z = z * 1.0001
    assert len(z.sum().gradient(x)[0].uop.toposort()) < 100_000
