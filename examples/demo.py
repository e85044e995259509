"""Train a small network on three spirals, and look at one of the kernels that did it.

    make demo
"""

from __future__ import annotations

import sys
import time
from typing import Any

from glassgrad import GlobalCounters, Tensor
from glassgrad.base.events import KernelCompiled, StageEntered, listen
from glassgrad.nn import Linear
from glassgrad.nn.optim import Adam
from glassgrad.nn.state import get_parameters

ARMS, POINTS, STEPS = 3, 300, 600


class Network:
    """2 -> 64 -> 64 -> one score per arm."""

    def __init__(self) -> None:
        self.layers = [Linear(2, 64), Linear(64, 64), Linear(64, ARMS)]

    def __call__(self, x: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = layer(x).gelu()  # (points, 64)
        return self.layers[-1](x)  # (points, arms)


def spirals() -> tuple[Tensor, Tensor]:
    """Noisy points on spirals, and the arm that each lies on."""
    radius = Tensor.linspace(0.05, 1, POINTS)
    places, arms = [], []
    for arm in range(ARMS):
        angle = radius * 9 + 2.1 * arm + Tensor.randn(POINTS) * 0.15
        places.append(Tensor.stack(angle.cos() * radius, angle.sin() * radius, dim=1))
        arms.append(Tensor.full((POINTS,), arm))
    x, y = Tensor.cat(*places), Tensor.cat(*arms)
    return x.contiguous().realize(), y.contiguous().realize()


def show(line: str, last: bool = False) -> None:
    """On one line in a terminal, as plain lines elsewhere."""
    if sys.stdout.isatty():
        print(f"\r\033[K{line}", end="\n" if last else "", flush=True)
    else:
        print(line)


def train(network: Network, x: Tensor, y: Tensor) -> None:
    optimizer = Adam(get_parameters(network), lr=0.01)
    begin = mark = time.perf_counter()
    every = 20 if sys.stdout.isatty() else 100
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        loss = network(x).sparse_categorical_crossentropy(y).backward()
        optimizer.step()
        if step == 1:
            value = loss.item()
            first, mark = time.perf_counter() - begin, time.perf_counter()
            show(f"step    1  loss {value:.4f}  ({first:.2f} s, with compiling)", last=True)
        elif step % every == 0 or step == STEPS:
            rate = (step - 1) / (time.perf_counter() - mark)
            show(f"step {step:4}  loss {loss.item():.4f}  {rate:.0f} steps/s", last=step == STEPS)


def main() -> None:
    Tensor.manual_seed(42)
    sources: list[Any] = []

    def look(event: object) -> None:
        if isinstance(event, StageEntered) and event.stage == "devices":
            sources.append(event.value)
        elif isinstance(event, KernelCompiled):
            pass

    x, y = spirals()
    network = Network()
    print(f"{ARMS} spirals of {POINTS} points, {sum(p.numel() for p in get_parameters(network)):,} weights")
    with listen(look):
        train(network, x, y)
    right = network(x).argmax(axis=1).eq(y).float().mean().item()
    print(f"{100 * right:.1f}% of the points are on the right arm; {GlobalCounters.kernel_count:,} kernels ran")
    if sources:
        shortest = min(sources, key=lambda source: len(source.text))
        print(f"\nthe shortest of the {len(sources)} kernels that were compiled, {shortest.name}:\n")
        print(shortest.text)


if __name__ == "__main__":
    main()
