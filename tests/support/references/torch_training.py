"""The same training in PyTorch and here, in float32, captured: parameters after every few steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from glassgrad import Tensor, TinyJit
from glassgrad.nn.optim import Optimizer
from support.oracle import oracle

torch = oracle("torch")
SHAPES = [(5, 4), (5,), (3, 5), (3,)]


def start(shapes: list[tuple[int, ...]] = SHAPES) -> list[np.ndarray]:
    random = np.random.default_rng(1)
    return [random.standard_normal(shape).astype(np.float32) * 0.5 for shape in shapes]


def batches(count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(2)
    made = (random.standard_normal((8, 4 + 3)).astype(np.float32) for _ in range(count))
    return [(batch[:, :4].copy(), batch[:, 4:].copy()) for batch in made]


def loss_of(params: list[Any], x: Any, y: Any) -> Any:
    """A network of two layers; `tanh` and `@` are spelled alike on both sides."""
    hidden = (x @ params[0].T + params[1]).tanh()
    return ((hidden @ params[2].T + params[3] - y) ** 2).mean()


def train_torch(make: Callable[[list[Any]], Any], steps: int) -> list[np.ndarray]:
    params = [torch.tensor(array, requires_grad=True) for array in start()]
    optimizer = make(params)
    for x, y in batches(steps):
        optimizer.zero_grad()
        loss_of(params, torch.tensor(x), torch.tensor(y)).backward()
        optimizer.step()
    return [param.detach().numpy() for param in params]


def train_here(make: Callable[[list[Tensor]], Optimizer], steps: int) -> list[np.ndarray]:
    params = [Tensor(array) for array in start()]
    optimizer = make(params)

    @TinyJit
    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = loss_of(params, x, y).backward()
        return loss.realize(*optimizer.schedule_step())

    for x, y in batches(steps):
        step(Tensor(x), Tensor(y))
    return [param.numpy() for param in params]


def check_training(
    theirs: Callable[[list[Any]], Any],
    ours: Callable[[list[Tensor]], Optimizer],
    steps: int = 100,
    tolerance: float = 2e-5,
) -> None:
    for found, wanted in zip(train_here(ours, steps), train_torch(theirs, steps), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
