"""The whole pipeline: deep graphs, many nodes, and equal results on every path."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest
from support.compiler.schedules import TARGET, leaf, memory

from glassgrad import Tensor
from glassgrad.base.config import Context
from glassgrad.engine.cache.graph_keys import signature
from glassgrad.engine.pipeline import realize
from glassgrad.ir.uop import UOp
from glassgrad.schedule import movement, schedule
from glassgrad.tensor.lazy.deferred import expand_deferred


def long_chain(length: int, x: UOp) -> UOp:
    for number in range(length):
        x = x * 0.5 if number % 2 else x + 1.0
    return x


def test_a_chain_of_ten_thousand_ops_is_computed() -> None:
    (view,) = realize([long_chain(10_000, leaf([0.0, 8.0]))])
    want = np.array([0.0, 8.0], np.float32)
    for number in range(10_000):
        want = want * np.float32(0.5) if number % 2 else want + np.float32(1)
    np.testing.assert_allclose(view.numpy(), want, rtol=1e-6)


def calls_of(function: Callable[[], object]) -> int:
    """How many functions were called: a measure of work that does not jitter."""
    count = 0

    def profile(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def layers(count: int) -> list[UOp]:
    """About fourteen nodes per layer."""
    x = memory(64, 64)
    weight, bias = memory(64, 64), memory(64)
    for _ in range(count):
        x = (x @ weight + bias).relu() + x
        x = x * 0.5 + (x * x).mean(-1, keepdim=True)
    expand_deferred()
    return [x.uop]


def wide(count: int) -> list[UOp]:
    return [(memory(16, 16) * float(n % 7 + 2)).relu().sum(1).uop for n in range(count)]


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (lambda n: [long_chain(n, leaf(np.ones(4)))], 10_000),
        (layers, 350),
        (wide, 1_000),
    ],
    ids=["a chain", "layers", "many values"],
)
def test_time_is_linear_in_the_number_of_nodes(
    make: Callable[[int], list[UOp]], count: int
) -> None:
    work = []
    for size in (count, 2 * count):
        roots = make(size)
        movement.clear()
        work.append(calls_of(lambda roots=roots: schedule(roots, TARGET)))
    assert work[1] <= 2.2 * work[0], work


def test_looking_up_a_graph_takes_one_traversal() -> None:
    small, large = [calls_of(lambda n=n: signature(layers(n))) for n in (100, 200)]
    assert large <= 2.2 * small


def test_noopt_gives_the_same_answer() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(33, 65)).astype(np.float32)
    fast = Tensor(x).softmax().numpy()
    with Context(NOOPT=1):
        slow = Tensor(x).softmax().numpy()
    np.testing.assert_allclose(fast, slow, rtol=1e-5)


def test_intermediate_realize_calls_change_nothing() -> None:
    rng = np.random.default_rng(1)
    x, w = (rng.integers(-3, 4, (20, 20)).astype(np.float32) for _ in "xw")
    at_once = ((Tensor(x) @ Tensor(w)).relu() @ Tensor(w)).numpy()
    step = (Tensor(x) @ Tensor(w)).relu().realize()
    np.testing.assert_array_equal((step @ Tensor(w)).numpy(), at_once)
