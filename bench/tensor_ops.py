"""Scans, sorts, lookups, resizing, einsum and pooling, compared with PyTorch and tinygrad.

python -m bench.tensor_ops [name ...]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.timing import Work, best_of, row
from glassgrad import Tensor
from glassgrad.base.config import THREADS

RNG = np.random.default_rng(0)
VECTOR = RNG.random(1_000_000, np.float32)
MATRIX = RNG.random((1024, 1024), np.float32)
TABLE = RNG.random((32_000, 256), np.float32)
TOKENS = RNG.integers(0, 32_000, (8, 512)).astype(np.int64)
COLUMNS = RNG.integers(0, 1024, (1024, 1024)).astype(np.int64)
IMAGES = RNG.random((8, 32, 56, 56), np.float32)
HEADS = RNG.random((8, 64, 12, 32), np.float32)

# name -> arrays, the call in glassgrad and tinygrad, the call in PyTorch
Ours = Callable[..., Any]
OPERATIONS: dict[str, tuple[tuple[np.ndarray, ...], Ours, Callable[..., Any]]] = {
    "cumsum 1M": ((VECTOR,), lambda x: x.cumsum(0), lambda _, x: x.cumsum(0)),
    "cumsum 1024²": ((MATRIX,), lambda x: x.cumsum(1), lambda _, x: x.cumsum(1)),
    "cumsum columns": ((MATRIX,), lambda x: x.cumsum(0), lambda _, x: x.cumsum(0)),
    "sort 100k": ((VECTOR[:100_000],), lambda x: x.sort(0)[0], lambda _, x: x.sort(0)[0]),
    "sort 1024²": ((MATRIX,), lambda x: x.sort(1)[0], lambda _, x: x.sort(1)[0]),
    "topk 10 of 1024²": ((MATRIX,), lambda x: x.topk(10)[0], lambda _, x: x.topk(10)[0]),
    "embedding": ((TABLE, TOKENS), lambda w, i: w[i], lambda _, w, i: w[i]),
    "gather 1024²": (
        (MATRIX, COLUMNS),
        lambda x, i: x.gather(1, i),
        lambda _, x, i: x.gather(1, i),
    ),
    "scatter add 1024²": (
        (MATRIX, COLUMNS),
        lambda x, i: x.scatter_reduce(1, i, x, "sum"),
        lambda _, x, i: x.scatter_reduce(1, i, x, "sum"),
    ),
    "bilinear x2": (
        (IMAGES,),
        lambda x: x.interpolate((112, 112)),
        lambda torch, x: torch.nn.functional.interpolate(x, (112, 112), mode="bilinear"),
    ),
    "nearest x2": (
        (IMAGES,),
        lambda x: x.interpolate((112, 112), mode="nearest"),
        lambda torch, x: torch.nn.functional.interpolate(x, (112, 112), mode="nearest"),
    ),
    "einsum bqhd,bkhd": (
        (HEADS,),
        lambda x: type(x).einsum("bqhd,bkhd->bhqk", x, x),
        lambda torch, x: torch.einsum("bqhd,bkhd->bhqk", x, x),
    ),
    "max_pool2d 2": (
        (IMAGES,),
        lambda x: x.max_pool2d(2),
        lambda torch, x: torch.nn.functional.max_pool2d(x, 2),
    ),
    "avg_pool2d 3": (
        (IMAGES,),
        lambda x: x.avg_pool2d(3, 2),
        lambda torch, x: torch.nn.functional.avg_pool2d(x, 3, 2),
    ),
}


def contenders(name: str, threads: int) -> dict[str, Work]:
    arrays, ours, theirs = OPERATIONS[name]
    tensors = [Tensor(array).realize() for array in arrays]
    found: dict[str, Work] = {"glassgrad": lambda: ours(*tensors).realize()}
    try:
        import torch
    except ImportError:
        pass
    else:
        torch.set_num_threads(threads)
        rows = [torch.from_numpy(array) for array in arrays]
        found["torch"] = lambda: theirs(torch, *rows)
    return found | _tinygrad(arrays, ours)


def _tinygrad(arrays: tuple[np.ndarray, ...], ours: Ours) -> dict[str, Work]:
    """The same calls in tinygrad, if it is installed and finds a compiler."""
    try:
        from tinygrad import Tensor as Peer

        tensors = [Peer(array).realize() for array in arrays]
        ours(*tensors).realize()
    except (ImportError, OSError, RuntimeError):
        return {}
    return {"tinygrad": lambda: ours(*tensors).realize()}


def main() -> None:
    threads = THREADS.value or len(os.sched_getaffinity(0))
    print(f"tensor operations, {threads} threads, ms per call, Python included")
    selected = [name for name in sys.argv[1:] if name in OPERATIONS]
    for name in selected or OPERATIONS:
        print(row(name, best_of(contenders(name, threads), rounds=3)))


if __name__ == "__main__":
    main()
