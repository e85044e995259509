"""Training steps of whole models, with every kernel compared with its plain loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from glassgrad import Tensor, nn
from glassgrad.base.config import Context
from glassgrad.engine.cache import graph_keys as cache
from glassgrad.engine.verify import differences
from glassgrad.nn.gpt.config import Config
from glassgrad.nn.gpt.model import GPT
from glassgrad.nn.optim import SGD, AdamW, Muon, clip_grad_norm_
from glassgrad.nn.state import get_parameters

Model = Callable[[], Tensor]


@pytest.fixture(autouse=True)
def compared(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """VERIFY=1, and the names of the kernels whose outputs were compared."""
    names: list[str] = []
    inner = differences.require_close

    def count_comparison(launch: Any, *rest: Any) -> None:
        names.append(launch.executable.source.name)
        inner(launch, *rest)

    monkeypatch.setattr(differences, "require_close", count_comparison)
    Tensor.manual_seed(3)
    with Context(VERIFY=1, TRAINING=1):
        cache.clear()
        yield names
        cache.clear()


def some(*shape: int) -> Tensor:
    return Tensor(np.random.default_rng(len(shape)).standard_normal(shape, np.float32)).realize()


def classes(*shape: int, most: int) -> Tensor:
    return Tensor(np.random.default_rng(5).integers(0, most, shape)).realize()


def gpt(**changes: Any) -> tuple[list[Tensor], Model]:
    sizes = {"vocab_size": 131, "context": 64, "layers": 2, "heads": 4, "width": 64}
    model = GPT(Config(**{**sizes, **changes}))
    tokens = classes(2, 65, most=131)
    return get_parameters(model), lambda: model.loss(tokens[:, :-1], tokens[:, 1:])


def llama() -> tuple[list[Tensor], Model]:
    return gpt(family="llama", kv_heads=2, is_tied=False, hidden=96)


def convnet() -> tuple[list[Tensor], Model]:
    layers = [
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm(16), Tensor.relu, Tensor.max_pool2d,
        nn.Conv2d(16, 24, 3, padding=1, stride=2), nn.GroupNorm(4, 24), Tensor.silu,
        lambda x: x.flatten(1), nn.Dropout(0.2), nn.Linear(24 * 16, 10),
    ]  # fmt: skip
    images, labels = some(8, 3, 16, 16), classes(8, most=10)
    return get_parameters(layers), lambda: images.sequential(layers).cross_entropy(labels)


def residual() -> tuple[list[Tensor], Model]:
    """A block of a ResNet, with a strided shortcut and a mean over pixels."""
    first, second = nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.Conv2d(16, 16, 3, padding=1)
    norms, short, last = (
        [nn.BatchNorm(16), nn.BatchNorm(16)],
        nn.Conv2d(8, 16, 1, stride=2),
        nn.Linear(16, 5),
    )
    images, labels = some(4, 8, 16, 16), classes(4, most=5)

    def loss() -> Tensor:
        x = norms[1](second(norms[0](first(images)).relu()))
        return last((x + short(images)).relu().mean((2, 3))).cross_entropy(labels)

    return get_parameters([first, second, norms, short, last]), loss


def generator() -> tuple[list[Tensor], Model]:
    """Up-sampling, as GANs and diffusion models do."""
    up, down = nn.ConvTranspose2d(8, 4, 4, stride=2, padding=1), nn.Conv2d(4, 1, 3, padding=1)
    noise = some(2, 8, 8, 8)
    return get_parameters([up, down]), lambda: down(up(noise).leaky_relu()).tanh().square().mean()


def recurrent() -> tuple[list[Tensor], Model]:
    cell, last = nn.LSTMCell(6, 12), nn.Linear(12, 3)
    inputs, labels = some(16, 5, 6), classes(16, most=3)

    def loss() -> Tensor:
        state = None
        for number in range(5):
            state = cell(inputs[:, number], state)
        assert state is not None
        return last(state[0]).cross_entropy(labels)

    return get_parameters([cell, last]), loss


def perceptron(*sizes: int) -> tuple[list[Tensor], Model]:
    layers: list[Any] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), Tensor.tanh]
    x = some(128, sizes[0])
    return get_parameters(layers), lambda: x.sequential(layers[:-1]).square().mean()


MODELS: dict[str, Callable[[], tuple[list[Tensor], Model]]] = {
    "gpt": gpt,
    "gpt of one head and odd sizes": lambda: gpt(heads=1, width=33, context=65),
    "llama": llama,
    "convnet": convnet,
    "residual": residual,
    "generator": generator,
    "recurrent": recurrent,
    "perceptron": lambda: perceptron(13, 64, 64, 3),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_kernel_of_a_training_step_computes_what_its_plain_loops_do(
    name: str, compared: list[str]
) -> None:
    params, loss = MODELS[name]()
    optimizer = AdamW(params, lr=0.001)
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        result = loss().backward()
        clip_grad_norm_(params, 1.0)
        optimizer.step()
        losses.append(result.item())
    assert len(compared) > 5
    assert np.isfinite(losses).all()
    assert losses[1] < losses[0]


@pytest.mark.parametrize("kind", [SGD, Muon])
def test_other_optimizers(kind: Any, compared: list[str]) -> None:
    params, loss = perceptron(8, 16, 4)
    optimizer = kind([p for p in params if p.ndim == 2], lr=0.01)
    optimizer.zero_grad()
    loss().backward()
    optimizer.step()
    assert compared
