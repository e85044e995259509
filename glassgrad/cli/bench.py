"""`glassgrad bench`: the speed of this machine in a few benchmarks, compared with NumPy."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from glassgrad.base.config import Context
from glassgrad.nn.gpt import GPT, Config, Decoder
from glassgrad.nn.optim import AdamW
from glassgrad.nn.state import get_parameters
from glassgrad.tensor.jit.function import TinyJit
from glassgrad.tensor.tensor import Tensor


def run(options: Namespace) -> int:
    seconds = 0.2 if options.quick else 1.0
    sizes = (256, 512) if options.quick else (256, 512, 1024, 2048)
    print(f"{'best of many runs':<32}{'glassgrad':>14}{'NumPy':>14}")
    for size in sizes:
        _products(size, seconds)
    _rows(seconds)
    _model(seconds)
    return 0


def _products(size: int, seconds: float) -> None:
    a, b = _random(size, size), _random(size, size)
    work = 2 * size**3 / 1e9
    ours = _best(_captured(lambda x, y: x @ y, a, b), seconds)
    theirs = _best(lambda: a @ b, seconds)
    _line(f"product {size} x {size}", work / ours, work / theirs, "GFLOP/s")


def _rows(seconds: float) -> None:
    x = _random(2048, 2048)
    ours = _best(_captured(lambda t: t.softmax(-1), x), seconds)

    def softmax() -> None:
        powers = np.exp(x - x.max(-1, keepdims=True))
        powers /= powers.sum(-1, keepdims=True)

    _line("softmax 2048 x 2048", ours * 1e3, _best(softmax, seconds) * 1e3, "ms")
    ours = _best(_captured(lambda t: t.sum(), x), seconds)
    _line("sum of 16 MB", x.nbytes / ours / 1e9, x.nbytes / _best(x.sum, seconds) / 1e9, "GB/s")


def _model(seconds: float) -> None:
    config = Config.named("nano")
    model = GPT(config)
    optimizer = AdamW(get_parameters(model), lr=1e-3)

    @TinyJit
    def step(batch: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model.loss(batch[:, :-1], batch[:, 1:])
        loss.backward()
        return loss.realize(*optimizer.schedule_step())

    batch = Tensor(np.arange(8 * (config.context + 1), dtype=np.int32).reshape(8, -1) % 1000)
    with Context(TRAINING=1):
        ours = _best(lambda: step(batch.realize()).item(), seconds)
    _line("training nano, tokens", 8 * config.context / ours, None, "/s")
    decoder = Decoder(model)
    decoder.read([[1]])

    def token() -> None:
        decoder.position = 1
        decoder.step([2])

    _line("writing with nano, tokens", 1 / _best(token, seconds), None, "/s")


def _random(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def _captured(function: Callable[..., Tensor], *arrays: np.ndarray[Any, Any]) -> Callable[[], Any]:
    """The function, captured as one native call."""
    replay = TinyJit(function)
    tensors = [Tensor(array).realize() for array in arrays]
    return lambda: replay(*tensors)


def _best(function: Callable[[], Any], seconds: float) -> float:
    """The shortest run within this time, after two warm-up runs."""
    function()
    function()
    best, end = float("inf"), perf_counter() + seconds
    while (start := perf_counter()) < end:
        function()
        best = min(best, perf_counter() - start)
    return best


def _line(name: str, ours: float, theirs: float | None, unit: str) -> None:
    other = "" if theirs is None else f"{theirs:14.2f}"
    print(f"{name:<32}{ours:14.2f}{other:>14}  {unit}")
