"""GlobalCounters: exact with threads, and what reset() keeps."""

import threading

import pytest

from glassgrad.base.counters import GlobalCounters


@pytest.fixture(autouse=True)
def _restored():
    yield
    GlobalCounters.reset()


def test_kernels_are_counted():
    GlobalCounters.reset()
    GlobalCounters.count(2, operations=100, nbytes=64, seconds=0.5)
    GlobalCounters.count(1, operations=1, nbytes=2)
    assert GlobalCounters.kernel_count == 3
    assert GlobalCounters.global_ops == 101
    assert GlobalCounters.global_mem == 66
    assert GlobalCounters.time_sum_s == 0.5


def test_reset_keeps_memory_in_use():
    before = GlobalCounters.mem_used
    GlobalCounters.allocated("TEST", 128)
    GlobalCounters.count(1, 1, 1)
    GlobalCounters.reset()
    assert GlobalCounters.kernel_count == 0
    assert GlobalCounters.mem_used == before + 128
    assert GlobalCounters.mem_used_per_device["TEST"] == 128
    GlobalCounters.allocated("TEST", -128)
    assert GlobalCounters.mem_used == before
    assert GlobalCounters.mem_used_per_device["TEST"] == 0


def test_threads_lose_no_counts():
    GlobalCounters.reset()

    def work():
        for _ in range(2_000):
            GlobalCounters.count(1, 2, 3)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert GlobalCounters.kernel_count == 8_000
    assert GlobalCounters.global_mem == 24_000


def test_the_peak_is_the_maximum_since_the_last_reset() -> None:
    GlobalCounters.reset()
    start = GlobalCounters.mem_used
    for nbytes in (100, 50, -100, 20):
        GlobalCounters.allocated("TEST", nbytes)
    assert (GlobalCounters.mem_peak, GlobalCounters.mem_used) == (start + 150, start + 70)
    GlobalCounters.reset()
    assert GlobalCounters.mem_peak == start + 70
    GlobalCounters.allocated("TEST", -70)
