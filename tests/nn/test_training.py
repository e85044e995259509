"""Small models learn."""

from __future__ import annotations

import numpy as np
from support.oracle import oracle

from glassgrad import Tensor, TinyJit, nn
from glassgrad.nn.datasets import digits
from glassgrad.nn.loader import Loader
from glassgrad.nn.optim import AdamW, CosineSchedule, clip_grad_norm_
from glassgrad.nn.state import get_parameters


def test_a_tiny_network_overfits_its_data() -> None:
    Tensor.manual_seed(0)
    random = np.random.default_rng(0)
    x = Tensor(random.standard_normal((32, 8)).astype(np.float32))
    y = Tensor(random.integers(0, 4, 32))
    layers = [nn.Linear(8, 64), Tensor.tanh, nn.LayerNorm(64), nn.Linear(64, 4)]
    params = get_parameters(layers)
    optimizer = AdamW(params, lr=0.02)

    @TinyJit
    def step() -> Tensor:
        optimizer.zero_grad()
        loss = x.sequential(layers).sparse_categorical_crossentropy(y).backward()
        clip_grad_norm_(params, 1.0)
        return loss.realize(*optimizer.schedule_step())

    first = step().item()
    for _ in range(150):
        last = step()
    assert first > 1
    assert last.item() < 0.01


def test_a_recurrent_network_remembers() -> None:
    """Which of two symbols came first is asked four steps later."""
    Tensor.manual_seed(0)
    random = np.random.default_rng(0)
    x = random.standard_normal((64, 5, 2)).astype(np.float32)
    y = Tensor((x[:, 0, 0] > 0).astype(np.int32))
    inputs = Tensor(x)
    cell, last = nn.GRUCell(2, 12), nn.Linear(12, 2)
    optimizer = AdamW(get_parameters([cell, last]), lr=0.03)

    @TinyJit
    def step() -> Tensor:
        optimizer.zero_grad()
        hidden = None
        for number in range(5):
            hidden = cell(inputs[:, number], hidden)
        assert hidden is not None
        loss = last(hidden).sparse_categorical_crossentropy(y).backward()
        return loss.realize(*optimizer.schedule_step())

    for _ in range(120):
        loss = step()
    assert loss.item() < 0.1


def test_a_network_classifies_97_percent_of_digits() -> None:
    oracle("sklearn")
    Tensor.manual_seed(0)
    x, y, x_test, y_test = digits()
    layers = [
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm(16), Tensor.relu, Tensor.max_pool2d,
        nn.Conv2d(16, 32, 3, padding=1), Tensor.relu, lambda x: x.flatten(1),
        nn.Dropout(0.2), nn.Linear(512, 10),
    ]  # fmt: skip
    loader = Loader(x, y, batch_size=64, drop_last=True)
    optimizer = AdamW(get_parameters(layers), lr=0.005)
    schedule = CosineSchedule(optimizer, steps=8 * len(loader), warmup=20)

    @TinyJit
    def step(images: Tensor, labels: Tensor) -> Tensor:
        optimizer.zero_grad()
        scores = (images.float() / 16).sequential(layers)
        loss = scores.sparse_categorical_crossentropy(labels).backward()
        return loss.realize(*optimizer.schedule_step(), *schedule.schedule_step())

    with Tensor.train():
        for _ in range(8):
            for images, labels in loader:
                step(images, labels)
    right = (x_test.float() / 16).sequential(layers).argmax(axis=1).numpy() == y_test.numpy()
    assert right.mean() >= 0.97
