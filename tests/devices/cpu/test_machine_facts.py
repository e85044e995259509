"""Facts that identify a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from glassgrad.devices.cpu.machine_facts import CPU_FACTS, machine_facts

CORE = "processor\t: 0\nmodel name\t: Some CPU\ncpu MHz\t\t: {mhz}\nflags\t\t: {flags}\n\n"


def facts(folder: Path, text: str) -> tuple[str, ...] | None:
    path = folder / "cpuinfo"
    path.write_text(text)
    return machine_facts(str(path))


def test_machine_facts_ignore_the_clock_and_include_features(tmp_path: Path) -> None:
    slow = facts(tmp_path, CORE.format(mhz=800, flags="sse avx") * 2)
    fast = facts(tmp_path, CORE.format(mhz=3200, flags="sse avx") * 64)
    other = facts(tmp_path, CORE.format(mhz=3200, flags="sse avx avx2"))
    assert slow is not None and slow == fast != other


def test_without_cpuinfo_there_are_no_facts(tmp_path: Path) -> None:
    assert machine_facts(str(tmp_path / "nothing")) is None


@pytest.mark.skipif(not Path(CPU_FACTS).exists(), reason="this system does not tell")
def test_this_machine_stays_the_same() -> None:
    assert machine_facts() == machine_facts()
