"""Train a convolutional network on handwritten digits.

python examples/mnist.py            MNIST, downloaded once (11 MB)
python examples/mnist.py --fashion  clothes instead of digits
python examples/mnist.py --quick    synthetic digits: nothing is downloaded
"""

from __future__ import annotations

import sys
import time

import numpy as np

from glassgrad import Tensor, TinyJit, nn
from glassgrad.helpers import trange
from glassgrad.nn.datasets import mnist
from glassgrad.nn.loader import Loader
from glassgrad.nn.optim import AdamW, CosineSchedule
from glassgrad.nn.state import get_parameters

# A bitmap of each digit: five rows of three dots.
DOTS = [
    "####.##.##.####", "..#..#..#..#..#", "###..#####..###", "###..####..####", "#.##.####..#..#",
    "####..###..####", "####..####.####", "###..#..#..#..#", "####.#####.####", "####.####..####",
]  # fmt: skip


class Network:
    """Two convolutions, pooling, two convolutions, pooling, and a linear layer."""

    def __init__(self, width: int) -> None:
        self.layers = [
            nn.Conv2d(1, width, 5), Tensor.relu,
            nn.Conv2d(width, width, 5, bias=False), nn.BatchNorm(width), Tensor.relu,
            Tensor.max_pool2d,
            nn.Conv2d(width, 2 * width, 3), Tensor.relu,
            nn.Conv2d(2 * width, 2 * width, 3, bias=False), nn.BatchNorm(2 * width), Tensor.relu,
            Tensor.max_pool2d,
            lambda x: x.flatten(1), nn.Dropout(0.25), nn.Linear(2 * width * 9, 10),
        ]  # fmt: skip

    def __call__(self, images: Tensor) -> Tensor:
        return (images.float() / 127.5 - 1).sequential(self.layers)


def synthetic_digits(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Digits of random size, position and brightness, in noise."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 10, count).astype(np.uint8)
    glyphs = np.array([[dot == "#" for dot in dots] for dots in DOTS]).reshape(10, 5, 3)
    images = random.uniform(0, 60, (count, 1, 28, 28))
    for image, label in zip(images[:, 0], labels, strict=True):
        scale_y, scale_x = random.integers(3, 6), random.integers(3, 7)
        glyph = np.kron(glyphs[label], np.ones((scale_y, scale_x)))
        top, left = (random.integers(0, 29 - size) for size in glyph.shape)
        area = image[top : top + glyph.shape[0], left : left + glyph.shape[1]]
        area += glyph * random.uniform(100, 190)
    return images.astype(np.uint8), labels


def train(network: Network, loader: Loader, epochs: int) -> None:
    steps = epochs * len(loader)
    optimizer = AdamW(get_parameters(network), lr=0.004)
    schedule = CosineSchedule(optimizer, steps, warmup=steps // 10)

    @TinyJit
    def step(images: Tensor, labels: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = network(images).sparse_categorical_crossentropy(labels, label_smoothing=0.1)
        loss.backward()
        return loss.realize(*optimizer.schedule_step(), *schedule.schedule_step())

    with Tensor.train(), trange(steps, disable=not sys.stderr.isatty()) as bar:
        for _ in range(epochs):
            for images, labels in loader:
                loss = step(images, labels)
                bar.update(1)
                if bar.n % 20 == 0 or bar.n == 1:
                    bar.set_description(f"loss {loss.item():.3f}")
            print(f"{bar.n:4} steps  loss {loss.item():.3f}")


def accuracy(network: Network, images: Tensor, labels: Tensor) -> float:
    """The fraction of correct predictions."""
    correct = 0
    classify = TinyJit(lambda x: network(x).argmax(axis=1))
    for x, y in Loader(images, labels, batch_size=250, seed=None, drop_last=True):
        correct += int((classify(x).numpy() == y.numpy()).sum())
    return correct / (len(labels) // 250 * 250)


def main() -> None:
    Tensor.manual_seed(1)
    is_quick = "--quick" in sys.argv
    if is_quick:
        x, y, x_test, y_test = map(
            Tensor, (*synthetic_digits(3000, seed=0), *synthetic_digits(500, seed=1))
        )
    else:
        x, y, x_test, y_test = mnist(fashion="--fashion" in sys.argv)
    network = Network(width=8 if is_quick else 32)
    weights = sum(param.numel() for param in get_parameters(network))
    print(f"{len(y):,} images, {weights:,} weights")
    begin = time.perf_counter()
    train(network, Loader(x, y, batch_size=100, drop_last=True), epochs=6 if is_quick else 4)
    test_accuracy = accuracy(network, x_test, y_test)
    seconds = time.perf_counter() - begin
    print(f"{test_accuracy:.1%} accuracy on {len(y_test):,} test images; {seconds:.0f} s")


if __name__ == "__main__":
    main()
