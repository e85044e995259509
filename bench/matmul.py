"""Matrix multiplication in several layouts, compared with PyTorch and NumPy.

THREADS=1 python -m bench.matmul
"""

from __future__ import annotations

import os

import numpy as np

from bench.timing import Work, best_of, launches
from glassgrad import Tensor
from glassgrad.base.config import THREADS

SIZES = (256, 512, 1024)
LAYOUTS = ("NN", "NT", "TN")


def contenders(size: int, layout: str, threads: int) -> dict[str, Work]:
    rng = np.random.default_rng(size)
    a, b = (rng.random((size, size), np.float32) for _ in range(2))
    ours = [Tensor(x) for x in (a, b)]
    theirs = [a, b]
    for side, letter in enumerate(layout):
        if letter == "T":
            ours[side] = ours[side].transpose(0, 1)
            theirs[side] = theirs[side].T
    x, y = theirs
    found: dict[str, Work] = {"glassgrad": launches(ours[0] @ ours[1]), "numpy": lambda: x @ y}
    try:
        import torch
    except ImportError:
        return found
    torch.set_num_threads(threads)
    s, t = torch.from_numpy(x), torch.from_numpy(y)
    return found | {"torch": lambda: s @ t}


def main() -> None:
    threads = THREADS.value or len(os.sched_getaffinity(0))
    print(f"matrix multiplication, float32, {threads} threads, GFLOP/s")
    for size in SIZES:
        for layout in LAYOUTS:
            times = best_of(contenders(size, layout, threads))
            rates = {name: 2 * size**3 / seconds / 1e9 for name, seconds in times.items()}
            cells = "".join(f"{name:>11} {rate:6.1f}" for name, rate in rates.items())
            peer = rates.get("torch", rates["numpy"])
            print(f"{size:5} {layout}{cells}   ours/torch {rates['glassgrad'] / peer:5.2f}")


if __name__ == "__main__":
    main()
