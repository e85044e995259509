"""Measuring in another process: crashes and hangs there cost nothing here."""

from __future__ import annotations

import sys
from dataclasses import replace
from math import inf, isfinite
from pathlib import Path

import pytest
from support.compiler.nests import kernel_of
from support.compiler.schedules import memory

import glassgrad
from glassgrad import Tensor, Variable, dtypes
from glassgrad.devices.registry import Device
from glassgrad.engine.pipeline import write_source
from glassgrad.engine.tune.benchmark_client import BenchmarkClient, buffers_of, largest_values
from glassgrad.ir.stages import Source

TARGET = Device["CPU"].target
CRASH = """
define void @bad(ptr %args, ptr %scratch, i64 %begin, i64 %end) {
  store i32 1, ptr inttoptr (i64 8 to ptr)
  ret void
}
"""
HANG = """
define void @bad(ptr %args, ptr %scratch, i64 %begin, i64 %end) {
  br label %again
again:
  %x = load volatile i8, ptr %args
  br label %again
}
"""


@pytest.fixture(scope="module")
def good() -> Source:
    return write_source(kernel_of(memory(256, 256) + 1), TARGET)


def test_several_sources_are_measured_alternately(good: Source) -> None:
    with BenchmarkClient(TARGET) as client:
        one, two = client.measure([good, good], rounds=3)
    assert 0 < one < 1
    assert 0 < two < 1


@pytest.mark.parametrize("text", [CRASH, HANG, "this is no IR"], ids=["crash", "hang", "refused"])
def test_a_broken_source_takes_infinitely_long_and_the_next_one_works(
    good: Source, text: str
) -> None:
    bad = replace(good, name="bad", text=text)
    with BenchmarkClient(TARGET) as client:
        client.measure([good])  # starts the worker, which takes time
        client.timeout = 1.0 if text == HANG else 20.0
        assert client.measure([bad]) == [inf]
        client.timeout = 20.0
        assert isfinite(client.measure([good])[0])


def test_a_worker_that_cannot_start_measures_infinity(good: Source) -> None:
    with BenchmarkClient(TARGET, worker_module="glassgrad.no_such_module") as client:
        assert client.measure([good]) == [inf]


def test_the_worker_ends_with_its_client(good: Source) -> None:
    with BenchmarkClient(TARGET) as client:
        client.measure([good])
        process = client.process
        assert process is not None
        assert process.poll() is None
    assert process.poll() is not None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_worker_uses_this_package_and_its_threads(good: Source) -> None:
    with BenchmarkClient(replace(TARGET, cores=3)) as client:
        client.measure([good])
        assert client.process is not None
        told = Path(f"/proc/{client.process.pid}/environ").read_bytes().split(b"\0")
    parent = Path(glassgrad.__file__).parent.parent
    assert any(line.startswith(f"PYTHONPATH={parent}".encode()) for line in told)
    assert b"THREADS=3" in told
    assert b"BEAM=0" in told


def test_buffers_have_their_real_sizes() -> None:
    x, index = memory(10, 7), Tensor([1, 2, 3], dtype=dtypes.int32).realize()
    source = write_source(kernel_of(x[index] + 1), TARGET)
    sizes = buffers_of(source.program.uops)
    assert (3 * 7 * 4, True) in sizes
    assert (10 * 7 * 4, True) in sizes
    assert (3 * 4, False) in sizes


def test_variables_have_their_largest_values() -> None:
    length = Variable("length", 1, 50).bind(7)
    source = write_source(kernel_of(memory(64, 8)[:length] * 2), TARGET)
    assert largest_values(source.program.uops) == [50]
