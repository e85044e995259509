"""A small training run in a process of its own, to be killed: python training_run.py folder steps.

Prints each step when it is done, and a hash of all that was learned at the end.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator

import numpy as np

from glassgrad import Tensor, TinyJit, nn
from glassgrad.nn.checkpoint import Checkpoints
from glassgrad.nn.loader import Loader
from glassgrad.nn.optim import Adam, CosineSchedule
from glassgrad.nn.state import get_parameters, get_state_dict


class Net:
    """Dropout draws random numbers, the norm has running statistics."""

    def __init__(self) -> None:
        self.first, self.norm, self.last = nn.Linear(4, 16), nn.BatchNorm(16), nn.Linear(16, 1)

    def __call__(self, x: Tensor) -> Tensor:
        return self.last(self.norm(self.first(x)).relu().dropout(0.5))


def endless(loader: Loader) -> Iterator[tuple[Tensor, Tensor]]:
    while True:
        yield from loader


def run(folder: str, steps: int, every: int = 5) -> str:
    Tensor.manual_seed(7)
    x = np.random.default_rng(0).standard_normal((40, 4)).astype(np.float32)
    loader = Loader(x, x.sum(1, keepdims=True), batch_size=8, seed=3, drop_last=True)
    net = Net()
    optimizer = Adam(get_parameters(net), lr=0.01)
    schedule = CosineSchedule(optimizer, steps=100, warmup=10)
    parts = {"model": net, "optimizer": optimizer, "schedule": schedule, "loader": loader}
    saved = Checkpoints(folder, **parts)

    @TinyJit
    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = (net(x) - y).square().mean().backward()
        return loss.realize(*optimizer.schedule_step(), *schedule.schedule_step())

    begin = saved.resume()
    print("from", begin, flush=True)
    with Tensor.train():
        for number, (images, labels) in zip(range(begin, steps), endless(loader), strict=False):
            step(images, labels)
            if (number + 1) % every == 0:
                saved.save(number + 1)
            print("step", number + 1, flush=True)
    digest = hashlib.sha256()
    for name, tensor in get_state_dict([net, optimizer, schedule]).items():
        digest.update(name.encode() + tensor.numpy().tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    print("hash", run(sys.argv[1], int(sys.argv[2])), flush=True)
