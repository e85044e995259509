"""Train a small network on three spirals, and print one of its kernels.

make demo
"""

from __future__ import annotations

import sys
import time

from glassgrad import GlobalCounters, Tensor
from glassgrad.base.events import Event, StageEntered, listen
from glassgrad.ir.stages import Source
from glassgrad.nn import Linear
from glassgrad.nn.optim import Adam
from glassgrad.nn.state import get_parameters

ARMS, POINTS, STEPS = 3, 300, 600


class Network:
    """A perceptron: 2 -> 64 -> 64 -> one logit per arm."""

    def __init__(self) -> None:
        self.layers = [Linear(2, 64), Linear(64, 64), Linear(64, ARMS)]

    def __call__(self, x: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = layer(x).gelu()  # (points, 64)
        return self.layers[-1](x)  # (points, arms)


def spirals() -> tuple[Tensor, Tensor]:
    """Noisy points on spirals, and the arm of each."""
    radius = Tensor.linspace(0.05, 1, POINTS)
    points, arms = [], []
    for arm in range(ARMS):
        angle = radius * 9 + 2.1 * arm + Tensor.randn(POINTS) * 0.15
        points.append(Tensor.stack(angle.cos() * radius, angle.sin() * radius, dim=1))
        arms.append(Tensor.full((POINTS,), arm))
    x, y = Tensor.cat(*points).contiguous(), Tensor.cat(*arms).contiguous()
    return x.realize(y), y


class Progress:
    """A line that is updated in a terminal; separate lines if the output is no terminal."""

    def __init__(self) -> None:
        self.is_terminal = sys.stdout.isatty()
        self.every = 10 if self.is_terminal else 100
        self.begin = time.perf_counter()

    def show(self, step: int, loss: Tensor) -> None:
        if step == 1:
            value = loss.item()
            seconds = time.perf_counter() - self.begin
            self.begin = time.perf_counter()  # exclude compilation from the rate
            print(f"step    1  loss {value:.4f}  {seconds:.2f} s including compilation")
        elif step % self.every == 0:
            rate = (step - 1) / (time.perf_counter() - self.begin)
            line = f"step {step:4}  loss {loss.item():.4f}  {rate:.0f} steps/s"
            print(f"\r\033[K{line}" if self.is_terminal else line, end="", flush=True)
            print(end="\n" if step == STEPS or not self.is_terminal else "")


def train(network: Network, x: Tensor, y: Tensor) -> list[Source]:
    """Train, and return the source of every kernel of the first step."""
    optimizer = Adam(get_parameters(network), lr=0.01)
    sources: list[Source] = []

    def record_source(event: Event) -> None:
        if isinstance(event, StageEntered) and isinstance(event.value, Source):
            sources.append(event.value)

    def train_step() -> Tensor:
        optimizer.zero_grad()
        loss = network(x).sparse_categorical_crossentropy(y).backward()
        optimizer.step()
        return loss

    progress = Progress()
    with listen(record_source):
        loss = train_step()
    progress.show(1, loss)
    for step in range(2, STEPS + 1):
        loss = train_step()
        progress.show(step, loss)
    return sources


def main() -> None:
    Tensor.manual_seed(42)
    x, y = spirals()
    network = Network()
    weights = sum(param.numel() for param in get_parameters(network))
    print(f"{ARMS} spirals of {POINTS} points, {weights:,} weights, on {x.device}")
    GlobalCounters.reset()
    sources = train(network, x, y)
    kernels = GlobalCounters.kernel_count / STEPS
    accuracy = network(x).argmax(axis=1).eq(y).float().mean().item()
    print(f"accuracy {100 * accuracy:.1f}%; {kernels:.0f} kernels per step")
    updates = [
        source for source in sources if "sqrt" in source.text
    ]  # of Adam, which has a square root
    shortest = min(updates or sources, key=lambda source: len(source.text))
    print(f"\na kernel of Adam, {shortest.name}, in {shortest.language}:\n\n{shortest.text}")


if __name__ == "__main__":
    main()
