"""Output memory of replays is reused once nothing refers to it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from glassgrad.base.config import Context
from glassgrad.base.counters import GlobalCounters
from glassgrad.nn.optim import SGD
from glassgrad.tensor.jit.function import TinyJit
from glassgrad.tensor.tensor import Tensor

ON_COMPILED_BACKEND = True


def floats(*values: float) -> Tensor:
    return Tensor(np.array(values, np.float32)).realize()


def training() -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """A captured step, and its parameter, which does not move."""
    w = Tensor(np.full(6, 0.5, np.float32))
    optimizer = SGD([w], lr=0.0)

    @TinyJit
    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = (w * w * x).sum()  # the gradient is x, read from w
        loss.backward()
        return loss.realize(*optimizer.schedule_step())

    return step, w


def batch(number: int) -> Tensor:
    return Tensor(np.full(6, number, np.float32)).realize()


def gradient(w: Tensor) -> Tensor:
    assert w.grad is not None
    return w.grad


def test_replays_refill_the_memory_of_captured_gradients() -> None:
    step, w = training()
    step(batch(0))
    places = set()
    with Context(JIT_CHECK=0):
        for number in range(1, 6):
            step(batch(number))
            assert gradient(w).tolist() == [number] * 6
            places.add(gradient(w).uop.arg.address)
    assert len(places) == 1


def test_memory_does_not_grow_from_the_first_call_to_the_last() -> None:
    step, _ = training()
    x = batch(1)
    step(x)
    used = GlobalCounters.mem_used
    for _ in range(5):
        step(x)
    arena = sum(found.replay.capture.arena_bytes for found in step.valid_captures().values())
    assert GlobalCounters.mem_used <= used + arena + 64  # the loss has two places


def test_a_gradient_with_other_references_is_not_overwritten() -> None:
    for early in range(4):
        step, w = training()
        for number in range(early + 1):
            step(batch(number))
        looked = gradient(w).numpy()
        for number in range(10, 14):
            step(batch(number))
        assert looked.tolist() == [early] * 6
        assert gradient(w).tolist() == [13] * 6


def test_a_value_made_of_a_gradient_is_not_overwritten() -> None:
    for early in range(1, 4):
        step, w = training()
        for number in range(early + 1):
            step(batch(number))
        twice = gradient(w) * 2
        for number in range(10, 13):
            step(batch(number))
        assert twice.tolist() == [2 * early] * 6
        assert gradient(w).tolist() == [12] * 6


def test_threads_that_replay_with_the_same_tensors_get_results_of_their_own() -> None:
    f = TinyJit(lambda x: x + 1)
    x = floats(*range(64))
    wanted = x.numpy() + 1
    for _ in range(3):
        f(x)

    def work() -> bool:
        held = [f(x) for _ in range(300)]
        addresses = {one.uop.arg.address for one in held}
        return len(addresses) == 300 and all(np.array_equal(one.numpy(), wanted) for one in held)

    with ThreadPoolExecutor(3) as threads:
        assert all(done.result() for done in [threads.submit(work) for _ in range(3)])


def test_two_results_take_turns_in_memory_while_the_last_one_is_held() -> None:
    f, x = TinyJit(lambda x: x + 1), floats(1, 2)
    for _ in range(9):
        held = f(x)
    addresses = set()
    for _ in range(5):  # before a check
        held = f(x)
        addresses.add(held.uop.arg.address)
    assert len(addresses) == 2
    array = held.numpy()  # holds the memory, not the tensor
    del held
    again = [f(x) for _ in range(4)]
    assert all(one.uop.arg.address != array.ctypes.data for one in again)
    assert array.tolist() == [2, 3]
