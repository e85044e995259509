"""Training steps of whole models, at small sizes that still have every kind of kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from glassgrad import Tensor, nn
from glassgrad.base.config import Context
from glassgrad.nn.gpt.config import Config
from glassgrad.nn.gpt.model import GPT
from glassgrad.nn.optim import SGD, AdamW, clip_grad_norm_
from glassgrad.nn.state import get_parameters
from sweep.programs import indices, memory


def train(model: Any, loss: Callable[[], Tensor], kind: Any = AdamW) -> None:
    params = get_parameters(model)
    optimizer = kind(params, lr=0.001)
    with Context(TRAINING=1):
        for _ in range(2):
            optimizer.zero_grad()
            loss().backward()
            clip_grad_norm_(params, 1.0)
            optimizer.step()


def gpt(**changes: Any) -> None:
    sizes = {"vocab_size": 1000, "context": 128, "layers": 2, "heads": 4, "width": 256}
    model = GPT(Config(**{**sizes, **changes}))
    tokens = indices(4, model.config.context + 1)
    train(model, lambda: model.loss(tokens[:, :-1], tokens[:, 1:]))


def llama() -> None:
    gpt(family="llama", kv_heads=2, is_tied=False, hidden=384)


def digits() -> None:
    """A convnet for images of 28x28."""
    layers = [
        nn.Conv2d(1, 32, 5), Tensor.relu, nn.Conv2d(32, 32, 5), Tensor.relu, nn.BatchNorm(32),
        Tensor.max_pool2d, nn.Conv2d(32, 64, 3), Tensor.relu, nn.Conv2d(64, 64, 3), Tensor.relu,
        nn.BatchNorm(64), Tensor.max_pool2d, lambda x: x.flatten(1), nn.Dropout(0.5),
        nn.Linear(576, 10),
    ]  # fmt: skip
    images, labels = memory(64, 1, 28, 28), indices(64)
    train(layers, lambda: images.sequential(layers).cross_entropy(labels))


class Block:
    """A residual block of two convolutions."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        self.convs = [
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm(outputs),
            Tensor.relu, nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm(outputs),
        ]  # fmt: skip
        projection = [nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm(outputs)]
        self.shortcut = projection if stride > 1 or inputs != outputs else []

    def __call__(self, x: Tensor) -> Tensor:
        return (x.sequential(self.convs) + x.sequential(self.shortcut)).relu()


def resnet18() -> None:
    widths = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
    blocks = [b for i, o, s in widths for b in (Block(i, o, s), Block(o, o, 1))]
    layers = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm(64), Tensor.relu,
        lambda x: x.max_pool2d(3, 2, padding=1), *blocks, lambda x: x.mean((2, 3)),
        nn.Linear(512, 1000),
    ]  # fmt: skip
    images, labels = memory(2, 3, 64, 64), indices(2)
    train(layers, lambda: images.sequential(layers).cross_entropy(labels), SGD)


def generator() -> None:
    up, down = nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1), nn.Conv2d(32, 3, 3, padding=1)
    noise = memory(2, 64, 16, 16)
    train([up, down], lambda: down(up(noise).leaky_relu()).tanh().square().mean())


def recurrent() -> None:
    cell, last = nn.LSTMCell(16, 64), nn.Linear(64, 3)
    inputs, labels = memory(16, 5, 16), indices(16)

    def loss() -> Tensor:
        state = None
        for number in range(5):
            state = cell(inputs[:, number], state)
        assert state is not None
        return last(state[0]).cross_entropy(labels)

    train([cell, last], loss)


def transformer() -> None:
    """A layer of a transformer encoder."""
    attend, norm = nn.MultiHeadAttention(128, 4), nn.LayerNorm(128)
    up, down = nn.Linear(128, 512), nn.Linear(512, 128)
    x = memory(2, 65, 128)

    def loss() -> Tensor:
        y = x + attend(norm(x))
        return (y + down(up(norm(y)).gelu())).square().mean()

    train([attend, norm, up, down], loss)


MODELS: dict[str, Callable[[], None]] = {
    "gpt": gpt,
    "gpt of one head and odd sizes": lambda: gpt(heads=1, width=33, context=65),
    "llama": llama,
    "digits": digits,
    "resnet18": resnet18,
    "generator": generator,
    "recurrent": recurrent,
    "transformer": transformer,
}
