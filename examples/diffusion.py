"""A diffusion model (DDPM) in two dimensions: noise becomes points on a heart.

A network learns to predict the noise in noisy points. Sampling starts from pure noise and removes
the predicted noise in small steps.

python examples/diffusion.py [--quick]
"""

from __future__ import annotations

import sys

import numpy as np

from glassgrad import Tensor, TinyJit, nn
from glassgrad.nn.optim import AdamW, CosineSchedule
from glassgrad.nn.state import get_parameters

STEPS = 50  # of the noise schedule
BATCH = 512


def heart(count: int, seed: int) -> np.ndarray:
    """Points on a heart of a size of about 1."""
    angle = np.random.default_rng(seed).uniform(0, 2 * np.pi, count)
    x = 16 * np.sin(angle) ** 3
    y = 13 * np.cos(angle) - 5 * np.cos(2 * angle) - 2 * np.cos(3 * angle) - np.cos(4 * angle)
    return np.stack([x, y + 3], axis=1).astype(np.float32) / 10


class Noise:
    """The noise schedule: the shares of signal and noise in a point after each step."""

    def __init__(self) -> None:
        self.beta = np.linspace(1e-3, 0.15, STEPS).astype(np.float32)
        self.alpha_bar = np.cumprod(1 - self.beta)
        self.signal = Tensor(np.sqrt(self.alpha_bar), requires_grad=False)
        self.noise = Tensor(np.sqrt(1 - self.alpha_bar), requires_grad=False)


class Network:
    """(points, steps) -> the noise in the points."""

    def __init__(self, width: int) -> None:
        self.time = nn.Embedding(STEPS, width)
        self.first = nn.Linear(2, width)
        self.middle = [nn.Linear(width, width) for _ in range(3)]
        self.last = nn.Linear(width, 2)

    def __call__(self, points: Tensor, step: Tensor) -> Tensor:
        x = (self.first(points * 3) + self.time(step)).sin()  # (batch, width)
        for layer in self.middle:
            x = x + layer(x.silu())
        return self.last(x.silu())


def train(network: Network, noise: Noise, steps: int) -> None:
    optimizer = AdamW(get_parameters(network), lr=0.003)
    schedule = CosineSchedule(optimizer, steps, warmup=steps // 20)

    @TinyJit
    def train_step(points: Tensor) -> Tensor:
        optimizer.zero_grad()
        step = Tensor.randint(BATCH, high=STEPS)
        added = Tensor.randn(BATCH, 2, requires_grad=False)
        noisy = points * noise.signal[step].unsqueeze(1) + added * noise.noise[step].unsqueeze(1)
        loss = (network(noisy, step) - added).square().mean().backward()
        return loss.realize(*optimizer.schedule_step(), *schedule.schedule_step())

    for number in range(1, steps + 1):
        loss = train_step(Tensor(heart(BATCH, number)))
        if number % (steps // 5) == 0:
            print(f"step {number:5}  loss {loss.item():.3f}")


def sample(network: Network, noise: Noise, count: int) -> np.ndarray:
    """Sample points: remove the predicted noise step by step."""

    @TinyJit
    def predict_noise(points: Tensor, step: Tensor) -> Tensor:
        return network(points, step)

    random = np.random.default_rng(0)
    points = random.standard_normal((count, 2)).astype(np.float32)
    for number in reversed(range(STEPS)):
        step = Tensor(np.full(count, number, np.int32))
        predicted = predict_noise(Tensor(points), step).numpy()
        beta, alpha_bar = noise.beta[number], noise.alpha_bar[number]
        points = (points - beta / np.sqrt(1 - alpha_bar) * predicted) / np.sqrt(1 - beta)
        if number:
            points = points + np.sqrt(beta) * random.standard_normal(points.shape)
        points = points.astype(np.float32)
    return points


def distance(points: np.ndarray) -> float:
    """The mean distance of points from the heart."""
    curve = heart(4000, 0)
    distances = np.linalg.norm(points[:, None] - curve[None], axis=2)
    return float(distances.min(1).mean())


def picture(points: np.ndarray, width: int = 60, height: int = 24) -> str:
    """A density plot in characters."""
    counts, _, _ = np.histogram2d(
        -points[:, 1], points[:, 0], bins=(height, width), range=((-2, 2), (-2, 2))
    )
    marks = " .:+#"
    return "\n".join("".join(marks[min(int(n), 4)] for n in row).rstrip() for row in counts)


def main() -> None:
    Tensor.manual_seed(0)
    is_quick = "--quick" in sys.argv
    noise, network = Noise(), Network(width=64 if is_quick else 128)
    print(f"noise is {distance(sample(network, noise, 1000)):.2f} away from the heart")
    train(network, noise, steps=1000 if is_quick else 6000)
    points = sample(network, noise, 1000)
    print(picture(points))
    print(f"points are {distance(points):.3f} away from the heart")


if __name__ == "__main__":
    main()
