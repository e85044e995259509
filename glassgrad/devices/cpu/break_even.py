"""Pool -> the nanoseconds of work that justify a second core: measured once, and stored on disk.

Workers stay awake between kernels, and the caller does the work of those that sleep instead of
waiting for them. So a second core costs the distribution of work and the final join, which is
measured with a series of empty kernels. Work should take several times as long. The result is
rounded to powers of two, so that noise does not change the generated kernels.
"""

from __future__ import annotations

from time import perf_counter_ns

from glassgrad.base.fast_dataclasses import frozen
from glassgrad.devices.cpu.native import host
from glassgrad.devices.cpu.object_cache import object_key, read_object, write_object
from glassgrad.devices.cpu.pool import Pool, Table, available_cores, load_code
from glassgrad.devices.cpu.pool_code import EMPTY_KERNEL, EMPTY_KERNEL_TEXT
from glassgrad.devices.protocol import Call
from glassgrad.ir.stages import Program, Source

DEFAULT_NS = 20_000  # with one thread, where nothing can be measured
MIN_NS, MAX_NS = 10_000, 80_000  # beyond, something else was measured
ROUNDS = 7  # measurements, of which the median counts
LAUNCHES = 64  # per measurement
MIN_WORK_RATIO = 16  # work should take this many times as long as its distribution


@frozen
class EmptyKernel:
    """A kernel with an empty step for every core."""

    source: Source
    address: int
    pool: Pool

    def __call__(self, pointers: tuple[int, ...], values: tuple[int, ...] = ()) -> None:
        Table(self.pool, (Call(self, pointers, values),)).run()


def core_work_ns(pool: Pool) -> int:
    """The work in nanoseconds that justifies a second core, for this pool."""
    if pool.threads < 2:
        return DEFAULT_NS
    key = object_key("break even 2", *host(), str(pool.threads), str(len(available_cores())))
    stored = read_object(key)
    if stored is not None and stored.isdigit():
        return round_to_step(int(stored))
    found = round_to_step(measure_break_even(pool))
    write_object(key, str(found).encode())
    return found


def measure_break_even(pool: Pool) -> float:
    """The time to run an empty kernel on all threads, times n/(n-1), times MIN_WORK_RATIO."""
    program = Program(EMPTY_KERNEL, (), cores=pool.threads)
    source = Source(EMPTY_KERNEL, EMPTY_KERNEL_TEXT, "llvm", program)
    executable = EmptyKernel(source, load_code(pool.has_futex).address(EMPTY_KERNEL), pool)
    table = Table(pool, (Call(executable, ()),) * LAUNCHES)
    table.run()
    times = []
    for _ in range(ROUNDS):
        start = perf_counter_ns()
        table.run()
        times.append((perf_counter_ns() - start) / LAUNCHES)
    return MIN_WORK_RATIO * sorted(times)[ROUNDS // 2] * pool.threads / (pool.threads - 1)


def round_to_step(nanoseconds: float) -> int:
    """The next of 10, 20, 40 and 80 microseconds.

    >>> round_to_step(3), round_to_step(15_000), round_to_step(1e9)
    (10000, 20000, 80000)
    """
    step = MIN_NS
    while step < min(nanoseconds, MAX_NS):
        step *= 2
    return step
