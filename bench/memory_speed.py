"""Elementwise operations and reductions of 16M floats, compared with NumPy and PyTorch.

THREADS=1 python -m bench.memory_speed
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from bench.timing import Work, best_of, launches, row
from glassgrad import Tensor
from glassgrad.base.config import THREADS

SIZE = 4096
Array = np.ndarray


def numpy_rows(x: Array, y: Array) -> dict[str, Work]:
    out = np.empty_like(x)
    return {
        "add": lambda: np.add(x, y, out=out),
        "scale": lambda: np.multiply(x, 2, out=out),
        "sum": x.sum,
        "sum rows": lambda: x.sum(1),
        "sum columns": lambda: x.sum(0),
        "max": x.max,
    }


def torch_rows(x: Array, y: Array, threads: int) -> dict[str, Work]:
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


def main() -> None:
    threads = THREADS.value or len(os.sched_getaffinity(0))
    x, y = (np.random.default_rng(seed).random((SIZE, SIZE), np.float32) for seed in (0, 1))
    tx, ty = Tensor(x), Tensor(y)
    rows: dict[str, Callable[[], Tensor]] = {
        "add": lambda: tx + ty,
        "scale": lambda: tx * 2,
        "sum": tx.sum,
        "sum rows": lambda: tx.sum(1),
        "sum columns": lambda: tx.sum(0),
        "max": tx.max,
    }
    print(f"{SIZE}x{SIZE} float32, {threads} threads, ms")
    numpy_work, torch_work = numpy_rows(x, y), torch_rows(x, y, threads)
    for name, ours in rows.items():
        work = {"glassgrad": launches(ours()), "numpy": numpy_work[name]}
        if name in torch_work:
            work["torch"] = torch_work[name]
        print(row(name, best_of(work)))


if __name__ == "__main__":
    main()
