"""A typical training script gives the same numbers captured and not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glassgrad import Context, Tensor, TinyJit, nn
from glassgrad.nn.optim import SGD, AdamW
from glassgrad.nn.state import get_parameters, get_state_dict, load_state_dict, safe_load, safe_save

ON_COMPILED_BACKEND = True
BATCH, FEATURES, CLASSES = 8, 6, 3


class Block:
    def __init__(self, width: int, drop: float) -> None:
        self.linear = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.drop = drop

    def __call__(self, x: Tensor) -> Tensor:
        return x + self.linear(self.norm(x)).gelu().dropout(self.drop)


class Net:
    def __init__(self, depth: int = 2) -> None:
        self.first = nn.Linear(FEATURES, 16)
        self.blocks = [Block(16, 0.1) for _ in range(depth)]
        self.last = nn.Linear(16, CLASSES)
        self.is_training = True
        self.temperature = 1.0

    def __call__(self, x: Tensor) -> Tensor:
        x = self.first(x).relu()
        for block in self.blocks:
            x = block(x)
        if self.is_training:
            x = x * 0.9
        return self.last(x) / self.temperature


class Average:
    """An exponential moving average of parameters."""

    def __init__(self, model: Net, decay: float) -> None:
        self.decay = decay
        self.parameters = get_parameters(model)
        self.averages = [p.detach().clone().realize() for p in self.parameters]

    def update(self) -> None:
        for average, parameter in zip(self.averages, self.parameters, strict=True):
            average.assign(average * self.decay + parameter.detach() * (1 - self.decay))


class Trainer:
    def __init__(self, kind: Any, is_captured: bool) -> None:
        Tensor.manual_seed(3)
        self.model = Net()
        self.optimizer = kind(get_parameters(self.model), lr=0.05)
        self.average = Average(self.model, 0.9)
        self.weight = 1.0
        self.steps = 0
        self.history: list[float] = []
        self.forward_backward = self._forward_backward
        self.update, self.evaluate = self._update, self._evaluate
        if is_captured:
            self.forward_backward = TinyJit(self._forward_backward)
            self.update, self.evaluate = TinyJit(self._update), TinyJit(self._evaluate)

    def _forward_backward(self, x: Tensor, y: Tensor) -> Tensor:
        self.steps += 1  # nobody reads it inside
        loss = self.model(x).sparse_categorical_crossentropy(y) * self.weight
        loss.backward()
        return loss.detach()

    def _update(self) -> Tensor:
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.average.update()
        return sum((p.square().sum() for p in self.average.averages), start=Tensor([0.0])).sqrt()

    def _evaluate(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.model(x).argmax(-1) == y).mean()


def run(kind: Any, is_captured: bool, folder: Path) -> list[float]:
    """Epochs over 27 examples in batches of 8, so the last one is smaller; two batches a step."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((27, FEATURES)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int32) + (x[:, 1] > 0)
    trainer = Trainer(kind, is_captured)
    model, optimizer, seen = trainer.model, trainer.optimizer, []
    best, patience = float("inf"), 0
    for epoch in range(12):
        optimizer.lr = 0.05 * 0.8**epoch
        trainer.weight = 1.0 if epoch < 4 else 0.5
        model.is_training = True
        with Tensor.train():
            for number, start in enumerate(range(0, 27, BATCH)):
                batch = Tensor(x[start : start + BATCH]), Tensor(y[start : start + BATCH])
                seen.append(trainer.forward_backward(*batch).item())
                if number % 2 == 1:
                    seen.append(trainer.update().item())
        model.is_training = False
        seen.append(trainer.evaluate(Tensor(x), Tensor(y)).item())
        if epoch == 4:
            safe_save(get_state_dict(model), folder / "model.safetensors")
        if epoch == 6:
            load_state_dict(model, safe_load(folder / "model.safetensors"), verbose=False)
        if epoch == 8:
            model.temperature = 2.0
            model.blocks.append(Block(16, 0.0))
        if epoch == 9:
            best_weights = {k: v.clone().realize() for k, v in get_state_dict(model).items()}
            load_state_dict(model, best_weights, verbose=False)
        loss = seen[-2]
        best, patience = (loss, 0) if loss < best else (best, patience + 1)
        if patience > 5:
            break
    return seen


@pytest.mark.parametrize("kind", [SGD, AdamW])
@pytest.mark.parametrize("checks", [0, 2])
def test_a_training_script_gives_the_same_numbers_captured_and_not(
    kind: Any, checks: int, tmp_path: Path
) -> None:
    wanted = run(kind, is_captured=False, folder=tmp_path)
    with Context(JIT_CHECK=checks):
        found = run(kind, is_captured=True, folder=tmp_path)
    assert len(wanted) > 40
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
