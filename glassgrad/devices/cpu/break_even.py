"""Pool -> the nanoseconds of work that are worth a second core: measured once, and then stored.

Workers stay awake from one kernel to the next, and a caller does not wait for those that sleep: it
takes their share. So what a second core costs is handing out work and collecting it, timed over a
row of kernels that do nothing. Work should take several times as long. Rounded to steps of two, so
that chance does not make new kernels.
"""

from __future__ import annotations

from time import perf_counter_ns

from glassgrad.base.fast_dataclasses import frozen
from glassgrad.devices.cpu.native import host
from glassgrad.devices.cpu.object_cache import object_key, read_object, write_object
from glassgrad.devices.cpu.pool import Pool, Table, available_cores, load_code
from glassgrad.devices.cpu.pool_code import EMPTY, NOTHING
from glassgrad.devices.protocol import Call
from glassgrad.ir.stages import Program, Source

USUAL = 20_000
LEAST, MOST = 10_000, 80_000  # what any machine is between; beyond, something else was measured
ROUNDS = 7
LAUNCHES = 64  # one after the other
WORTH = 16  # times as long as handing it out


@frozen
class Nothing:
    """A kernel that has a step for every core, and does nothing in it."""

    source: Source
    address: int
    pool: Pool

    def __call__(self, pointers: tuple[int, ...], values: tuple[int, ...] = ()) -> None:
        Table(self.pool, (Call(self, pointers, values),)).run()


def core_work_ns(pool: Pool) -> int:
    """What a second core is worth on this machine, for a pool of so many threads."""
    if pool.threads < 2:
        return USUAL
    key = object_key("break even 2", *host(), str(pool.threads), str(len(available_cores())))
    stored = read_object(key)
    if stored is not None and stored.isdigit():
        return rounded(int(stored))
    found = rounded(measured(pool))
    write_object(key, str(found).encode())
    return found


def measured(pool: Pool) -> float:
    """What handing a kernel to all threads takes, times n/(n-1), and several times that."""
    program = Program(NOTHING, (), cores=pool.threads)
    source = Source(NOTHING, EMPTY, "llvm", program)
    executable = Nothing(source, load_code(pool.has_futex).address(NOTHING), pool)
    table = Table(pool, (Call(executable, ()),) * LAUNCHES)
    table.run()
    times = []
    for _ in range(ROUNDS):
        start = perf_counter_ns()
        table.run()
        times.append((perf_counter_ns() - start) / LAUNCHES)
    return WORTH * sorted(times)[ROUNDS // 2] * pool.threads / (pool.threads - 1)


def rounded(nanoseconds: float) -> int:
    """The next of 10, 20, 40 and 80 microseconds.

    >>> rounded(3), rounded(15_000), rounded(1e9)
    (10000, 20000, 80000)
    """
    step = LEAST
    while step < min(nanoseconds, MOST):
        step *= 2
    return step
