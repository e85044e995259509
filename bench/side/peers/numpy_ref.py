"""numpy: the reference for the small workloads (and a contender where BLAS does the work)."""

import numpy as np


def to_numpy(x):
    return np.asarray(x)


def gemm(a, b):
    return lambda: a @ b


def linear(x, w):
    return lambda: x @ w.T


def chain(x):
    return lambda: (
        np.maximum(np.sqrt(np.abs(np.maximum(x * 1.5 + 0.5, 0) * x - 0.25)) * 0.5 + x, -0.5) * 2
    )


def gelu(x):
    return lambda: (
        0.5 * x * (1 + np.tanh(np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x)))
    )


def exp(x):
    return lambda: np.exp(x)


def sum_all(x):
    return x.sum


def sum_axis(x, axis):
    return lambda: x.sum(axis)


def transpose(x):
    return lambda: np.ascontiguousarray(x.T)


def cumsum(x):
    return lambda: x.cumsum(1)


def embedding(w, idx):
    return lambda: w[idx]


def argmax(x):
    return lambda: x.argmax(1)


def sort(x):
    return lambda: np.sort(x, 1)


def add_nojit(a, b):
    return lambda: a + b


def add_tolist(a, b):
    return (a + b).tolist


def softmax(x):
    def step():
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    return step


def layernorm(x, w, b):
    def step():
        c = x - x.mean(1, keepdims=True)
        return c / np.sqrt((c * c).mean(1, keepdims=True) + 1e-5) * w + b

    return step


def cross_entropy(x, y):
    def step():
        m = x.max(1)
        return (np.log(np.exp(x - m[:, None]).sum(1)) + m - x[np.arange(len(y)), y]).mean()

    return step
