"""Elementwise work and reductions over 16M floats beside NumPy and PyTorch: ratios of best times.

THREADS=1 python bench/memory_speed.py
"""

from __future__ import annotations

import os
from collections.abc import Callable
from time import perf_counter

import numpy as np

from glassgrad import Tensor
from glassgrad.base.config import THREADS
from glassgrad.devices.protocol import Batch
from glassgrad.devices.registry import Device
from glassgrad.engine.cache import PLANS, signature

SIZE = 4096


def best(work: Callable[[], object], rounds: int = 7) -> float:
    times = []
    for _ in range(rounds):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)


def prepared(value: Tensor) -> Batch:
    """The launches of a value, ready to run again on the same memory."""
    node = value.uop
    device = Device[Device.DEFAULT]
    key, _ = signature([node], device.name)
    value.realize()
    plan = PLANS.get(key)
    assert plan is not None
    batch: Batch = plan.batches[-1]
    return batch


def main() -> None:
    threads = THREADS.value or len(os.sched_getaffinity(0))
    x = np.random.default_rng(0).random((SIZE, SIZE), np.float32)
    y = np.random.default_rng(1).random((SIZE, SIZE), np.float32)
    tx, ty = Tensor(x), Tensor(y)
    out = np.empty_like(x)
    rows: dict[str, tuple[Callable[[], Tensor], Callable[[], object]]] = {
        "add": (lambda: tx + ty, lambda: np.add(x, y, out=out)),
        "scale": (lambda: tx * 2 + 1, lambda: np.multiply(x, 2, out=out)),
        "sum": (tx.sum, x.sum),
        "sum rows": (lambda: tx.sum(1), lambda: x.sum(1)),
        "sum columns": (lambda: tx.sum(0), lambda: x.sum(0)),
        "max": (tx.max, x.max),
    }
    peers = torch_rows(x, y, threads)
    print(f"{threads} threads, {SIZE}x{SIZE} float32, ms: ours, NumPy, PyTorch")
    for name, (ours, numpy) in rows.items():
        value = ours()
        batch = prepared(value)
        mine, theirs = best(batch.run), best(numpy)
        torch_time = best(peers[name]) if name in peers else float("nan")
        best_peer = min(t for t in (theirs, torch_time) if t == t)
        print(
            f"{name:12} {mine * 1e3:8.2f} {theirs * 1e3:8.2f} {torch_time * 1e3:8.2f}"
            f"   ours/best {mine / best_peer:5.2f}"
        )


def torch_rows(x: np.ndarray, y: np.ndarray, threads: int) -> dict[str, Callable[[], object]]:
    try:
        import torch
    except ImportError:
        return {}
    torch.set_num_threads(threads)
    a, b = torch.from_numpy(x), torch.from_numpy(y)
    out = torch.empty_like(a)
    return {
        "add": lambda: torch.add(a, b, out=out),
        "scale": lambda: torch.mul(a, 2, out=out),
        "sum": a.sum,
        "sum rows": lambda: a.sum(1),
        "sum columns": lambda: a.sum(0),
        "max": a.max,
    }


if __name__ == "__main__":
    main()
