"""Random training loops compute the same with and without the step cache."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

import glassgrad.tensor.autograd.backward
import glassgrad.tensor.lazy.realize
from glassgrad.base.errors import GradientError
from glassgrad.nn.optim import SGD, Adam, AdamW, clip_grad_norm_
from glassgrad.tensor.tensor import Tensor

SIZE = 4


class Loop:
    """Tensors and an optimizer; `act` does one random action, `results` are all values read."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.params = [Tensor(rng.standard_normal((SIZE, SIZE), np.float32)) for _ in range(3)]
        self.data = Tensor(rng.standard_normal((SIZE, SIZE), np.float32), requires_grad=False)
        self.optimizer = Random(seed).choice([SGD, Adam, AdamW])(self.params, lr=0.01)
        self.loss = self._loss(0)
        self.pending: list[Tensor] = []
        self.results: list[np.ndarray] = []

    def _loss(self, kind: int) -> Tensor:
        first, second, third = self.params
        x = self.data @ first
        x = [x.tanh, x.relu, x.sigmoid, x.softmax][kind % 4]()
        x = x @ second + third if kind % 3 else (x * second + third * third)
        return (x * x).mean()

    def act(self, choice: int, kind: int) -> None:
        first = self.params[kind % 3]
        actions: list[Callable[[], object]] = [
            lambda: setattr(self, "loss", self._loss(kind)),
            lambda: self.results.append(self.loss.numpy().copy()),
            self._step,
            self._step,
            lambda: first.grad is not None and self.results.append(first.grad.numpy().copy()),
            lambda: first.assign(first * 0.5),
            lambda: self.pending.append(first + kind),
            lambda: self.pending and self.results.append(self.pending.pop().numpy().copy()),
            lambda: self.pending.append(Tensor(first)),
            lambda: first.realize(),
            lambda: first.grad is not None and setattr(first, "grad", first.grad * 0.5),
            lambda: clip_grad_norm_(self.params, 1.0),
            self.loss.backward,
            self.loss.backward,
            self.optimizer.zero_grad,
        ]
        try:
            actions[choice % len(actions)]()
        except GradientError as error:  # for example of a loss whose parameters were overwritten
            self.results.append(np.array(len(error.message)))

    def _step(self) -> None:
        if any(param.grad is None for param in self.params):
            self.loss = self._loss(1)
            self.loss.backward()
        self.optimizer.step()

    def all_results(self) -> list[np.ndarray]:
        pending = [tensor.numpy().copy() for tensor in self.pending]
        return [*self.results, *pending, *(param.numpy().copy() for param in self.params)]


def outcome(seed: int) -> list[np.ndarray]:
    random, loop = Random(seed), Loop(seed)
    program = [(random.randrange(15), random.randrange(12)) for _ in range(random.randint(2, 7))]
    for _ in range(4):
        for choice, kind in program:
            loop.act(choice, kind)
    return loop.all_results()


@pytest.mark.parametrize("seed", range(40))
def test_cached_steps_equal_uncached_steps(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = outcome(seed)
    monkeypatch.setattr(glassgrad.tensor.lazy.realize, "look_up", lambda *_: None)
    monkeypatch.setattr(glassgrad.tensor.autograd.backward, "can_defer_gradients", lambda _: False)
    wanted = outcome(seed)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
