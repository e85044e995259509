"""Threads with tensors of their own do not interfere; threads may share a model to read."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from threading import Barrier, Thread
from typing import Any

import numpy as np
import pytest

from glassgrad import Tensor, TinyJit, nn

ON_COMPILED_BACKEND = True
SECONDS = float(os.environ.get("GLASSGRAD_THREAD_SECONDS", "1.5"))
COUNT = 4


@pytest.fixture(autouse=True)
def threads_switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(work: Callable[[int], None], count: int = COUNT) -> None:
    """Run work(0), work(1), … at the same time; the first error is raised."""
    errors: list[BaseException] = []
    start = Barrier(count)

    def run(number: int) -> None:
        start.wait()
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def descent(number: int, steps: int) -> np.ndarray:
    """Gradient descent on a small network of its own."""
    rng = np.random.default_rng(number)
    x, y = (Tensor(rng.standard_normal((8, 4)).astype(np.float32)) for _ in range(2))
    w = Tensor(rng.standard_normal((4, 4)).astype(np.float32), requires_grad=True)
    b = Tensor(np.zeros(4, np.float32), requires_grad=True)
    optimizer = nn.optim.SGD([w, b], lr=0.05, momentum=0.5 if number % 2 else 0.0)
    for _ in range(steps):
        loss = ((x @ w + b).tanh() - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return np.concatenate([w.numpy().ravel(), b.numpy()])


def writes(number: int, steps: int) -> np.ndarray:
    """In-place writes to parts, views and values."""
    rng = np.random.default_rng(number)
    model = rng.integers(-4, 5, (6, 5)).astype(np.float32)
    x = Tensor(model).realize()
    rows = [x[i] for i in range(6)]
    for step in range(steps):
        i, j = (int(n) for n in rng.integers(0, 5, 2))
        old = x[j] * 2
        rows[i] += step % 3
        x[:, j] *= -1
        x[i, j:] = old[j:]
    return x.numpy().copy()


def captured(number: int, steps: int) -> np.ndarray:
    """A captured step that writes to a tensor of its own."""
    total = Tensor(np.zeros(5, np.float32)).realize()

    @TinyJit
    def step(x: Tensor) -> Tensor:
        total.assign(total * 0.5 + x)
        return (total + number).realize()

    for n in range(steps):
        step(Tensor(np.full(5, n, np.float32)).realize())
    return total.numpy().copy()


@pytest.mark.parametrize("program", [descent, writes, captured])
def test_threads_without_shared_tensors_do_not_interfere(program) -> None:
    steps = 12
    expected = [program(number, steps) for number in range(COUNT)]
    end = time.monotonic() + SECONDS
    while True:
        found: dict[int, np.ndarray] = {}

        def work(number: int, found=found) -> None:
            found[number] = program(number, steps)

        in_threads(work)
        for number, wanted in enumerate(expected):
            np.testing.assert_array_equal(found[number], wanted)
        if time.monotonic() > end:
            break


def test_different_programs_at_the_same_time() -> None:
    programs = [descent, writes, captured, descent]
    expected = [program(n, 15) for n, program in enumerate(programs)]
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        found: dict[int, np.ndarray] = {}

        def work(number: int, found=found) -> None:
            found[number] = programs[number](number, 15)

        in_threads(work)
        for number, wanted in enumerate(expected):
            np.testing.assert_array_equal(found[number], wanted)


def test_pending_writes_of_other_threads_are_not_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    others: list[Tensor] = []
    find_capture = TinyJit._find_capture

    def write() -> None:
        if not others:
            others.append(Tensor([1.0]).realize())
        others[0].assign(others[0] + 1)

    def write_meanwhile(jit: TinyJit, call: Any) -> Any:
        thread = Thread(target=write)
        thread.start()
        thread.join()
        return find_capture(jit, call)

    monkeypatch.setattr(TinyJit, "_find_capture", write_meanwhile)
    step = TinyJit(lambda x: x + 1)
    assert [step(Tensor([n]).realize()).item() for n in range(2)] == [1, 2]
    (captured,) = step.valid_captures().values()
    assert not captured.outside_tensors
    assert others[0].item() == 3


def test_threads_read_one_model() -> None:
    Tensor.manual_seed(1)
    model = [nn.Linear(4, 8), Tensor.relu, nn.Linear(8, 3)]
    inputs = [np.full((2, 4), n, np.float32) for n in range(COUNT)]
    expected = [Tensor(x).sequential(model).numpy().copy() for x in inputs]

    def work(number: int) -> None:
        for _ in range(10):
            found = Tensor(inputs[number]).sequential(model).numpy()
            np.testing.assert_array_equal(found, expected[number])

    in_threads(work)


def test_random_numbers_of_threads_are_different() -> None:
    found: list[bytes] = []

    def work(number: int) -> None:
        for _ in range(20):
            found.append(Tensor.rand(4).numpy().tobytes())

    in_threads(work)
    assert len(set(found)) == len(found)


def test_views_of_one_tensor_made_by_many_threads_share_it() -> None:
    for _ in range(20):
        x = Tensor(np.zeros(COUNT, np.float32)).realize()

        def work(number: int, x=x) -> None:
            x[number : number + 1].assign(Tensor([number + 1.0]))

        in_threads(work)
        assert x.tolist() == [1, 2, 3, 4]


def test_a_write_is_done_once_while_other_threads_compute() -> None:
    """Computing replaces nodes of pending writes of all threads, which may just now read them."""

    def work(_: int) -> None:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            a, c = Tensor([3.0]).realize(), Tensor([2.0] * 3, requires_grad=True).realize()
            b = Tensor.ones(4, 3).contiguous().realize()
            b[0:3] += c
            d = b.reshape(12)
            b[:3] *= a
            d += a
            (d * d).sum().backward()
            assert d.tolist() == [12.0] * 9 + [4.0] * 3

    in_threads(work)


def add_to_part(x: Tensor) -> None:
    x[1:3] += 1


@pytest.mark.parametrize(
    "add_one",
    [
        lambda x: x.__iadd__(1),
        lambda x: x.add_(1),
        lambda x: x[1:3].sub_(-1),
        add_to_part,
    ],
)
def test_no_update_of_a_shared_tensor_is_lost(add_one: Callable[[Tensor], object]) -> None:
    x = Tensor(np.zeros(4, np.float32)).realize()

    def work(number: int) -> None:
        for _ in range(40):
            add_one(x)

    in_threads(work)
    assert x.tolist()[1:3] == [40.0 * COUNT] * 2
