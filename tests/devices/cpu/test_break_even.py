"""The work that justifies a second core: measured once, then read from disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from glassgrad.base.config import Context
from glassgrad.devices.cpu import break_even
from glassgrad.devices.cpu.break_even import (
    DEFAULT_NS,
    MAX_NS,
    MIN_NS,
    core_work_ns,
    measure_break_even,
    round_to_step,
)
from glassgrad.devices.cpu.device import CpuDevice
from glassgrad.devices.cpu.pool import Pool


@pytest.fixture
def pool() -> Pool:
    return Pool(2)


def test_distributing_work_takes_some_microseconds(pool: Pool) -> None:
    assert 100 < measure_break_even(pool) < 1e9


def test_the_break_even_point_is_measured_once(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter((33_000.0, 70_000.0))
    monkeypatch.setattr(break_even, "measure_break_even", lambda pool: next(times))
    with Context(CACHE=str(tmp_path)):
        assert core_work_ns(pool) == 40_000
        assert core_work_ns(pool) == 40_000
        assert core_work_ns(Pool(3)) == 80_000  # other threads, another answer


def test_a_damaged_measurement_is_repeated(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(break_even, "measure_break_even", lambda pool: 12_000.0)
    with Context(CACHE=str(tmp_path)):
        core_work_ns(pool)
        (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
        file.write_bytes(b"nonsense")
        assert core_work_ns(pool) == 20_000


def test_one_thread_measures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(break_even, "measure_break_even", None)
    assert core_work_ns(Pool(1)) == DEFAULT_NS


def test_results_are_powers_of_two_within_bounds() -> None:
    assert {round_to_step(n) for n in range(0, 200_000, 500)} == {10_000, 20_000, 40_000, 80_000}
    assert (round_to_step(0), round_to_step(1e12)) == (MIN_NS, MAX_NS)


def test_the_device_s_target_has_it() -> None:
    assert MIN_NS <= CpuDevice("CPU:77").target.core_work_ns <= MAX_NS
