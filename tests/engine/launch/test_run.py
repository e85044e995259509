"""Running a plan: results, counters, events, threads."""

from __future__ import annotations

from threading import Barrier, Thread

import numpy as np
import pytest
from support.compiler.schedules import assign, leaf

from glassgrad import Tensor, Variable
from glassgrad.base.counters import GlobalCounters
from glassgrad.base.events import KernelLaunched, listen
from glassgrad.engine import pipeline
from glassgrad.engine.cache import graph_keys as cache
from glassgrad.engine.launch.run import run
from glassgrad.engine.pipeline import realize
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp


def test_counters_count_kernels_operations_and_bytes() -> None:
    x = Tensor(np.ones((64, 64), np.float32)).realize()
    GlobalCounters.reset()
    (x + 1).realize()
    assert GlobalCounters.kernel_count == 1
    assert GlobalCounters.global_ops == 64 * 64
    assert GlobalCounters.global_mem == 2 * 64 * 64 * 4
    (x + 1).realize()
    assert GlobalCounters.kernel_count == 2


def test_counting_does_not_depend_on_listeners() -> None:
    x = Tensor(np.ones((8, 8), np.float32)).realize()
    counts = []
    for is_heard in (False, True):
        GlobalCounters.reset()
        if is_heard:
            with listen(lambda event: None):
                (x @ x).relu().realize()
        else:
            (x @ x).relu().realize()
        counts.append((GlobalCounters.kernel_count, GlobalCounters.global_ops))
    assert counts[0] == counts[1]


def test_every_launch_is_announced_with_its_name_and_work() -> None:
    x = Tensor(np.ones((8, 8), np.float32)).realize()
    seen: list[object] = []
    with listen(seen.append):
        (x.sum(0) + 1).realize()
    (launch,) = [event for event in seen if isinstance(event, KernelLaunched)]
    assert launch.name.startswith("r_")
    assert launch.operations >= 64
    assert launch.bytes == (64 + 8) * 4
    assert launch.seconds > 0


def test_realized_values_are_returned_unchanged() -> None:
    x = leaf([1.0, 2.0])
    (view,) = realize([x])
    assert view is x.arg


def test_an_assigned_buffer_comes_back_as_a_new_version_of_the_same_memory() -> None:
    x = leaf([1.0, 2.0])
    (view,) = realize([assign(x, x * 3.0)])
    assert view is not x.arg
    assert view.address == x.arg.address
    assert view.numpy().tolist() == [3.0, 6.0]


def test_a_plan_with_writes_runs_again_on_other_buffers() -> None:
    for start in (1.0, 5.0):
        x, y = leaf([start, 2.0]), leaf([-start, 0.5])
        new_x, new_y = realize([assign(x, y), assign(y, x)])
        assert new_x.numpy().tolist() == [-start, 0.5]
        assert new_y.numpy().tolist() == [start, 2.0]


def test_values_without_elements_launch_nothing() -> None:
    GlobalCounters.reset()
    (view,) = realize([leaf(np.ones((0, 3))) + 1.0])
    assert view.shape == (0, 3)
    assert GlobalCounters.kernel_count == 0


def test_a_scalar_result_has_no_axes() -> None:
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    (view,) = realize([UOp(Ops.REDUCE, x.dtype, (x,), (Ops.ADD, (0, 1)))])
    assert view.shape == ()
    assert view.numpy() == 10.0


@pytest.mark.parametrize("is_cold", [True, False], ids=["compiling", "compiled"])
def test_many_threads_realize_at_once(is_cold: bool) -> None:
    """All threads start together; each must get the results of its own inputs."""
    if is_cold:
        cache.clear()
    workers, rounds = 6, 8
    start = Barrier(workers)
    wrong: list[object] = []

    def work(number: int) -> None:
        rng = np.random.default_rng(number)
        start.wait()
        for turn in range(rounds):
            x = rng.integers(-4, 5, (48, 40)).astype(np.float32)
            w = rng.integers(-4, 5, (40, 32)).astype(np.float32)
            hidden = (Tensor(x) @ Tensor(w)).relu()
            got = (hidden @ Tensor(w).transpose() + number).sum(1).numpy()
            want = (np.maximum(x @ w, 0) @ w.T + number).sum(1)
            if not np.array_equal(got, want):
                wrong.append((number, turn))

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001  a thread's error must fail the test
            wrong.append(error)

    threads = [Thread(target=guarded, args=(number,)) for number in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_plan_with_variables_is_not_launched_without_their_values() -> None:
    size = Variable("n", 1, 8).bind(3)
    x = Tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]).realize()
    for _ in range(2):  # the second time reuses the prepared batch
        value = (x[:size] * 2).sum().uop
        plan, leaves, device, values = pipeline.bind_plan([value])
        run(plan, leaves, device, values)
    with pytest.raises(KeyError):
        run(plan, leaves, device)
