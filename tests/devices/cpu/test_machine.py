"""Facts about this machine come from the system, with defaults where it has none."""

from pathlib import Path

import pytest

from glassgrad.base.config import Context
from glassgrad.base.dtype import dtypes
from glassgrad.devices.cpu.machine import (
    DEFAULT_BYTES,
    DEFAULT_LINES,
    LINE_FACTS,
    cache_bytes,
    cpu_target,
    l1_lines,
    usable_cores,
    vector_registers,
)
from glassgrad.devices.cpu.native import Host, host


@pytest.mark.parametrize(
    ("features", "registers"),
    [
        ("+sse2,+avx,+avx2,+avx512f", (64, 32)),
        ("+sse2,+avx,+avx2,-avx512f", (32, 16)),
        ("+sse2,-avx", (16, 16)),
        ("+neon", (16, 32)),
    ],
)
def test_vector_registers_follow_from_features(features: str, registers: tuple[int, int]) -> None:
    assert vector_registers(set(features.split(","))) == registers


def test_caches_are_read_from_the_system(tmp_path: Path) -> None:
    entries = [
        (1, "Data", "48K"),
        (1, "Instruction", "64K"),
        (2, "Unified", "2M"),
        (3, "Unified", "?"),
    ]
    for number, (level, kind, size) in enumerate(entries):
        entry = tmp_path / f"index{number}"
        entry.mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (entry / name).write_text(f"{text}\n")
    assert cache_bytes(str(tmp_path)) == {1: 48 << 10, 2: 2 << 20, 3: DEFAULT_BYTES[3]}
    assert cache_bytes(str(tmp_path / "nowhere")) == DEFAULT_BYTES


def test_l1_lines_are_read_from_the_system(tmp_path: Path) -> None:
    entry = tmp_path / "index0"
    entry.mkdir()
    for name, text in zip(LINE_FACTS, ("128", "12"), strict=True):
        (entry / name).write_text(f"{text}\n")
    assert l1_lines(str(tmp_path)) == (128, 12)
    (entry / LINE_FACTS[1]).write_text("0\n")  # what some virtual machines say
    assert l1_lines(str(tmp_path)) == DEFAULT_LINES
    assert l1_lines(str(tmp_path / "nowhere")) == DEFAULT_LINES


def test_float16_is_native_only_where_no_library_is_needed() -> None:
    with_half = cpu_target(Host("x86_64-linux", "x", "+avx,+f16c", "0"))
    without = cpu_target(Host("x86_64-linux", "x", "+avx,-f16c", "0"))
    assert dtypes.float16 in with_half.dtypes and dtypes.float16 not in without.dtypes
    assert dtypes.bfloat16 not in with_half.dtypes


def test_the_setting_decides_the_number_of_threads() -> None:
    with Context(THREADS=3):
        assert cpu_target(host()).cores == 3
    assert cpu_target(host()).cores == usable_cores() >= 1


def test_a_container_with_half_a_core_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quota = tmp_path / "cpu.max"
    monkeypatch.setattr("glassgrad.devices.cpu.machine.QUOTA", str(quota))
    monkeypatch.setattr("glassgrad.devices.cpu.machine.available_cores", lambda: [0, 1, 2, 3])
    for text, cores in (("50000 100000", 1), ("150000 100000", 2), ("max 100000", 4), ("9", 4)):
        quota.write_text(text)
        assert usable_cores() == cores


def test_dot_products_follow_from_features() -> None:
    avx2 = cpu_target(Host("x86_64-linux", "x", "+avx,+avx2", "0"))
    assert [dot.name for dot in avx2.dots] == ["x86.avx2.pmadd.wd"]
    without = cpu_target(Host("x86_64-linux", "x", "+avx,-avx2", "0"))
    assert without.dots == (), "vectors are wide, but not those of ints"
    neon = cpu_target(Host("aarch64-linux", "x", "+neon,+dotprod", "0"))
    assert [dot.name.split(".")[2] for dot in neon.dots] == ["sdot", "udot"]
    assert cpu_target(Host("riscv64-linux", "x", "+v", "0")).dots == ()
