"""The thread pool runs every step once, in order, and sleeps when idle."""

import gc
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from support.compiler.hand_programs import Lines, address, integer, load, source_of
from support.compiler.on_cpu import cpu

from glassgrad.base.dtype import dtypes
from glassgrad.devices.cpu.device import NativeCode
from glassgrad.devices.cpu.pool import Pool, Table, available_cores, cores_from_current
from glassgrad.devices.protocol import Call
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.uop import UOp

I64 = dtypes.int64
THREADS = [1, 2, 5]
FUTEX = [None, False]  # as the system has it, or with mutex and condition


def count_steps(steps: int, name: str = "count") -> NativeCode:
    """out[i] = out[i] * 3 + i for every CORE step i."""
    lines = Lines()
    out = lines.param(0, I64)
    core = lines.loop(0, steps, AxisKind.CORE)
    value = lines.add(load(out.index(core)))
    lines.store(out.index(core), value * integer(3) + core)
    lines.end(core)
    return cpu().compile(source_of(lines.program(name, cores=steps)))


@pytest.mark.parametrize("has_futex", FUTEX)
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("steps", [1, 2, 3, 7, 64, 1000])
def test_every_step_runs_exactly_once(threads: int, steps: int, has_futex: bool | None) -> None:
    pool = Pool(threads, has_futex)
    out = np.ones(steps, np.int64)
    table = Table(pool, [Call(count_steps(steps), (address(out),))])
    for _ in range(20):
        before = out.copy()
        table.run()
        assert np.array_equal(out, before * 3 + np.arange(steps))


@pytest.mark.parametrize("threads", THREADS)
def test_launches_run_in_order_with_a_barrier_between(threads: int) -> None:
    """Each launch reads what all cores of the one before it wrote."""
    steps = 50
    lines = Lines()
    out, x = lines.param(0, I64), lines.param(1, I64)
    core = lines.loop(0, steps, AxisKind.CORE)
    mirrored = lines.add(integer(steps - 1) - core)
    lines.store(out.index(core), load(x.index(mirrored)) + integer(1))
    lines.end(core)
    execute = cpu().compile(source_of(lines.program("mirror", cores=steps)))
    one, two = np.arange(steps), np.zeros(steps, np.int64)
    calls = [
        Call(execute, (address(two), address(one))),
        Call(execute, (address(one), address(two))),
    ]
    Table(Pool(threads), calls * 100).run()
    assert np.array_equal(one, np.arange(steps) + 200)


def test_pointers_and_values_can_be_replaced_between_runs() -> None:
    lines = Lines()
    out = lines.param(0, I64)
    number = lines.add(UOp(Ops.VARIABLE, I64, (), ("n", 0, 100)))
    lines.store(out.index(integer(0)), number)
    execute = cpu().compile(source_of(lines.program("write")))
    one, two = np.zeros(1, np.int64), np.zeros(1, np.int64)
    table = Table(
        Pool(2), [Call(execute, (address(one),), (5,)), Call(execute, (address(two),), (6,))]
    )
    table.run()
    assert (one[0], two[0]) == (5, 6)
    table.set_pointer(1, 0, address(one))
    table.set_value(1, 0, 42)
    table.run()
    assert (one[0], two[0]) == (42, 6)


@pytest.mark.parametrize("threads", THREADS)
def test_each_thread_has_scratch_of_its_own(threads: int) -> None:
    """Fill scratch with the step's number, then add it up again: a shared one would mix."""
    steps, length = 40, 2000
    lines = Lines()
    out = lines.param(0, I64)
    room = lines.add(UOp(Ops.SCRATCH, I64, (), (0, length, 0)))
    core = lines.loop(0, steps, AxisKind.CORE)
    fill = lines.loop(1, length)
    lines.store(room.index(fill), core)
    filled = lines.end(fill)
    acc = lines.acc(integer(0))
    read = lines.loop(2, length)
    lines.assign(acc, lines.add(acc + load(lines.after(room, filled).index(read))))
    end = lines.end(read)
    lines.store(out.index(core), lines.after(acc, end))
    lines.end(core)
    execute = cpu().compile(source_of(lines.program("fill", cores=steps, scratch_bytes=length * 8)))
    out_data = np.zeros(steps, np.int64)
    Table(Pool(threads), [Call(execute, (address(out_data),))]).run()
    assert np.array_equal(out_data, np.arange(steps) * length)


def test_python_threads_may_use_one_pool_at_once() -> None:
    pool, execute = Pool(2), count_steps(64)
    arrays = [np.zeros(64, np.int64) for _ in range(4)]

    def work(out: np.ndarray) -> None:
        table = Table(pool, [Call(execute, (address(out),))])
        for _ in range(10):
            table.run()

    threads = [threading.Thread(target=work, args=(out,)) for out in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    want = np.zeros(64, np.int64)
    for _ in range(10):
        want = want * 3 + np.arange(64)
    assert all(np.array_equal(out, want) for out in arrays)


def test_an_idle_pool_uses_no_cpu_time() -> None:
    out = np.zeros(64, np.int64)
    pool = Pool(2)
    Table(pool, [Call(count_steps(64), (address(out),))]).run()
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.15, "two spinning threads would have used 0.3 s each"
    assert len(pool.workers) == 1


def test_a_stopped_pool_runs_on_the_caller() -> None:
    out = np.zeros(64, np.int64)
    pool = Pool(3)
    table = Table(pool, [Call(count_steps(64), (address(out),))])
    table.run()
    assert len(pool.workers) == 2
    pool.stop()
    assert not pool.workers
    table.run()
    assert np.array_equal(out, np.arange(64) * 4)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="the system does not list threads")
def test_a_collected_pool_leaves_no_threads() -> None:
    before = len(os.listdir("/proc/self/task"))
    pool = Pool(4)
    Table(pool, [Call(count_steps(64), (address(np.zeros(64, np.int64)),))]).run()
    assert len(os.listdir("/proc/self/task")) == before + 3
    del pool
    gc.collect()
    assert len(os.listdir("/proc/self/task")) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_the_child_of_a_fork_builds_its_own_pool() -> None:
    out = np.zeros(64, np.int64)
    pool = Pool(2)
    table = Table(pool, [Call(count_steps(64), (address(out),))])
    table.run()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            table.run()
            fresh = count_steps(63, "fresh")  # compiling works there as well
            other = np.zeros(63, np.int64)
            Table(pool, [Call(fresh, (address(other),))]).run()
            right = np.array_equal(out, np.arange(64) * 4) and other[62] == 62
            status = 0 if right and len(pool.workers) == 1 else 1
        finally:
            os._exit(status)
    deadline = time.monotonic() + 30
    while (done := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.01)
    if done == (0, 0):
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert done[1] == 0, "the child hung or computed something else"
    table.run()
    assert np.array_equal(out, np.arange(64) * 4), "the parent is as before"


def test_cores_are_listed_from_the_current_one() -> None:
    assert sorted(cores_from_current()) == available_cores()


BUSY = """
import sys, threading, time
from glassgrad import Tensor, TinyJit

x = Tensor.ones(1024, 1024).contiguous().realize()

@TinyJit
def step(x):
    for _ in range(int(sys.argv[1])):
        x = ((x @ x) * 0.001).realize()
    return x

for _ in range(3):
    before = time.monotonic()
    step(x)
    taken = time.monotonic() - before

def work():
    while True:
        step(x)

threading.Thread(target=work, daemon=True).start()
time.sleep(taken / 10)
print(taken, time.monotonic(), flush=True)
"""


@pytest.mark.parametrize("length", [1, 8, 40])
def test_an_exit_does_not_wait_for_a_daemon_thread(length: int) -> None:
    command = [sys.executable, "-c", BUSY, str(length)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    end = time.monotonic()
    assert (done.returncode, done.stderr) == (0, "")
    taken, left = map(float, done.stdout.split())
    assert length < 40 or end - left < taken / 2
