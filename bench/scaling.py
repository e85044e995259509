"""Scaling of the schedule stage: the time for 20,000 nodes divided by the time for 10,000.

python -m bench.scaling
"""

from __future__ import annotations

from time import perf_counter

from glassgrad import Tensor
from glassgrad.base.gc_pause import gc_paused
from glassgrad.devices.registry import Device
from glassgrad.schedule import schedule


def chain(nodes: int) -> Tensor:
    x = Tensor.rand(64).realize()
    for _ in range(nodes // 2):
        x = x * 1.0001 + 0.1
    return x


def products(nodes: int) -> Tensor:
    w = Tensor.rand(16, 16).realize()
    x = w
    for _ in range(nodes // 7):
        x = (x @ w).relu() / (x.sum() + 1)
    return x


def seconds(value: Tensor) -> float:
    target = Device[Device.DEFAULT].target
    times = []
    for _ in range(3):
        with gc_paused():  # as engine/pipeline.py does
            start = perf_counter()
            schedule([value.uop], target)
            times.append(perf_counter() - start)
    return min(times)


def main() -> None:
    for build in (chain, products):
        small, large = build(10_000), build(20_000)
        counts = [len(value.uop.toposort()) for value in (small, large)]
        one, two = seconds(small), seconds(large)
        print(
            f"{build.__name__:10} {counts[0]} nodes {one * 1e3:6.0f} ms, "
            f"{counts[1]} nodes {two * 1e3:6.0f} ms, ratio {two / one:.2f}"
        )


if __name__ == "__main__":
    main()
