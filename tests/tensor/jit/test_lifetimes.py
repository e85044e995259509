"""Lifetimes of captures and of what they hold; use from several threads."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from glassgrad import GlobalCounters, Tensor, TinyJit, jit
from glassgrad.base.errors import CaptureError
from glassgrad.base.events import LISTENERS, KernelLaunched, listen

ON_COMPILED_BACKEND = True


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return Tensor(np.random.default_rng(seed).standard_normal(shape, np.float32)).realize()


def test_methods_have_captures_of_their_own_and_do_not_keep_their_object() -> None:
    class Model:
        def __init__(self, n: float) -> None:
            self.weight = Tensor([n]).realize()

        @TinyJit
        def __call__(self, x: Tensor) -> Tensor:
            return x * self.weight

    one, two = Model(2.0), Model(3.0)
    for n in range(4):
        assert (one(Tensor([n])).item(), two(Tensor([n])).item()) == (2.0 * n, 3.0 * n)
    gone = weakref.ref(one)
    del one
    gc.collect()
    assert gone() is None


def test_captures_are_freed_with_their_function() -> None:
    gc.collect()
    before = GlobalCounters.mem_used

    def use() -> None:
        f = jit(lambda x: ((x + 1).contiguous() * 2).realize().sum())
        for n in range(4):
            f(Tensor.full((100_000,), float(n)).contiguous().realize())

    use()
    gc.collect()
    assert GlobalCounters.mem_used == before


def test_memory_does_not_grow_over_many_replays() -> None:
    weight = numbers(8)

    @TinyJit
    def f(x: Tensor) -> Tensor:
        weight.assign(weight * 0.5 + x)
        return (weight + 1).realize(weight)

    x = numbers(8)
    for _ in range(10):
        f(x)
    gc.collect()
    used, objects = GlobalCounters.mem_used, len(gc.get_objects())
    for _ in range(10_000):
        f(x)
    gc.collect()
    assert GlobalCounters.mem_used <= used + 32  # the block that is held while another is filled
    assert len(gc.get_objects()) < objects + 100


def test_a_captured_function_may_be_used_inside_of_another() -> None:
    inner = jit(lambda x: x * 2)
    outer = jit(lambda x: inner(x) + inner(x + 1))
    for n in range(5):
        assert outer(Tensor([float(n)])).tolist() == [4.0 * n + 2]
        assert inner(Tensor([float(n)])).tolist() == [2.0 * n]


def test_two_threads_may_replay_one_capture() -> None:
    f = jit(lambda x: (x * 2).realize() + 1)
    for _ in range(2):
        f(numbers(64))
    wrong: list[int] = []

    def work(seed: int) -> None:
        for n in range(200):
            x = numbers(64, seed=seed * 1000 + n)
            if not np.array_equal(f(x).numpy(), x.numpy() * 2 + 1):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_error_inside_leaves_the_function_usable() -> None:
    fails = [True]

    @TinyJit
    def f(x: Tensor) -> Tensor:
        if fails[0]:
            raise ValueError("no")
        return x + 1

    with pytest.raises(ValueError, match="no"):
        f(Tensor([1.0]))
    fails[0] = False
    for n in range(4):
        assert f(Tensor([float(n)])).tolist() == [n + 1.0]


def test_arguments_that_could_change_unnoticed_cannot_be_captured() -> None:
    f = jit(lambda x, y: x)
    with pytest.raises(CaptureError, match="ndarray"):
        f(Tensor([1.0]), np.zeros(3))


def test_a_function_without_work_can_be_captured() -> None:
    f = jit(lambda x: x)
    for _ in range(4):
        x = Tensor([1.0])
        assert f(x) is x


def test_each_launch_emits_an_event_if_there_are_listeners() -> None:
    f = jit(lambda x: (x + 1).realize() * 2)
    for _ in range(3):
        f(numbers(5))
    events: list[Any] = []
    with listen(events.append):
        x = numbers(5, seed=2)
        assert np.array_equal(f(x).numpy(), (x.numpy() + 1) * 2)
    assert sum(isinstance(event, KernelLaunched) for event in events) >= 2
    assert not LISTENERS
