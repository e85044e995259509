"""Determinism: digests of the bits of results, to compare runs and thread counts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from hashlib import sha256

import numpy as np

from glassgrad import Tensor


def _array(*shape: int, seed: int = 0) -> Tensor:
    return Tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32)).realize()


def _training_step() -> Tensor:
    x, first, second = _array(256, 784), _array(784, 128, seed=1), _array(128, 10, seed=2)
    ((x @ first).relu() @ second).log_softmax().square().mean().backward()
    assert first.grad is not None
    return first.grad


def _attention() -> Tensor:
    q, k, v = (_array(2, 8, 256, 64, seed=seed) for seed in range(3))
    return q.scaled_dot_product_attention(k, v)


def _attention_gradient() -> Tensor:
    q, k, v = (_array(2, 4, 128, 64, seed=seed) for seed in range(3))
    (grad,) = q.scaled_dot_product_attention(k, v, is_causal=True).square().sum().gradient(k)
    return grad


def _convolution_gradient() -> Tensor:
    x, w = _array(8, 16, 32, 32), _array(32, 16, 3, 3, seed=1)
    (grad,) = x.conv2d(w, padding=1).square().sum().gradient(w)
    return grad


RESULTS: dict[str, Callable[[], Tensor]] = {
    "sum of all, 10^7": lambda: _array(10_000_019).sum(),
    "sum of all, (4096, 1024)": lambda: _array(4096, 1024).sum(),
    "sum of columns, (100000, 64)": lambda: _array(100_000, 64).sum(0),
    "sum of columns, (2048, 2048)": lambda: _array(2048, 2048).sum(0),
    "sum of columns, (1000, 7)": lambda: _array(1000, 7).sum(0),
    "sum of rows, (64, 100000)": lambda: _array(64, 100_000).sum(1),
    "sum of rows, (4096, 512)": lambda: _array(4096, 512).sum(1),
    "mean, (8, 64, 56, 56) over 0, 2, 3": lambda: _array(8, 64, 56, 56).mean((0, 2, 3)),
    "var, (1000, 1000)": lambda: _array(1000, 1000).var(1),
    "softmax, (512, 1000)": lambda: _array(512, 1000).softmax(),
    "logsumexp, 10^6": lambda: _array(1_000_000).logsumexp(),
    "layernorm, (512, 768)": lambda: _array(512, 768).layernorm(),
    "cumsum, 10^6": lambda: _array(1 << 20).cumsum(0),
    "cumsum, (1000, 1000) over 0": lambda: _array(1000, 1000).cumsum(0),
    "matrix product, 512 x 512 x 512": lambda: _array(512, 512) @ _array(512, 512, seed=1),
    "matrix product, 1000 x 333 x 77": lambda: _array(1000, 333) @ _array(333, 77, seed=1),
    "matrix product, 64 x 50257 x 64": lambda: _array(64, 50_257) @ _array(50_257, 64, seed=1),
    "matrix product, 8 x 4096 x 4096": lambda: _array(8, 4096) @ _array(4096, 4096, seed=1),
    "matrix-vector product, 4096 x 4096": lambda: _array(4096, 4096) @ _array(4096, seed=1),
    "vector-matrix product, 4096 x 4096": lambda: _array(4096) @ _array(4096, 4096, seed=1),
    "dot product, 10^6": lambda: _array(1_000_000) @ _array(1_000_000, seed=1),
    "convolution, (8, 16, 32, 32), 3x3": lambda: _array(8, 16, 32, 32).conv2d(
        _array(32, 16, 3, 3, seed=1), padding=1
    ),
    "gradient of a convolution": _convolution_gradient,
    "attention, (2, 8, 256, 64)": _attention,
    "gradient of attention": _attention_gradient,
    "gradient of two layers": _training_step,
    "scatter_add, 10^5 into 100": lambda: Tensor.zeros(100).scatter_add(
        0, Tensor(np.arange(100_000) * 7919 % 100), _array(100_000)
    ),
    "sort, (64, 1000)": lambda: _array(64, 1000).sort()[0],
    "random numbers, 10^6": lambda: (Tensor.manual_seed(3), Tensor.randn(1_000_000))[1],
}


def digest(value: Tensor) -> str:
    return sha256(np.ascontiguousarray(value.numpy()).tobytes()).hexdigest()


def digests_of(text: str) -> dict[str, str]:
    """Parse the output of `main`."""
    return dict([line.split("\t") for line in text.splitlines()])


def main() -> None:
    """Print the digests of the results named on the command line, or of all."""
    for name in sys.argv[1:] or RESULTS:
        print(f"{name}\t{digest(RESULTS[name]())}")


if __name__ == "__main__":
    main()
