"""Lines of JSON -> lines of JSON: compiles sources and measures them.

`engine/tune/benchmark_client.py` is the other end; it kills this process if there is no answer.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from math import inf
from time import perf_counter
from typing import IO, Any

import numpy as np

from glassgrad.base.errors import GlassgradError
from glassgrad.devices import registry
from glassgrad.devices.protocol import Call, Device
from glassgrad.engine.cache.sources import decode_source

MIN_MEASURING_SECONDS = 0.02  # total time of the runs of one measurement
# shorter kernels are run several times per call, to hide the cost of the call
MIN_BATCH_SECONDS = 2e-4
MAX_RUNS = 25  # of one measurement
HOPELESS_FACTOR = 3.0  # slower than the best one by this factor: not measured again
FLOAT_FILL_BYTE = 0x3C  # repeated, an ordinary number in every float format
BUFFER_ALIGNMENT = 64  # bytes


class BenchmarkBuffers:
    """Arguments of real size, kept from one measurement to the next."""

    def __init__(self) -> None:
        self.wanted: list[Any] = []
        self.arrays: list[np.ndarray[Any, Any]] = []

    def addresses(self, wanted: list[Any]) -> tuple[int, ...]:
        """Floats are ordinary numbers; ints are zeros, which are valid indices."""
        if wanted != self.wanted:
            self.wanted, self.arrays = wanted, []
            for nbytes, is_float in wanted:
                self.arrays.append(
                    np.full(nbytes + 2 * BUFFER_ALIGNMENT, FLOAT_FILL_BYTE * is_float, np.uint8)
                )
        return tuple(
            [-(-array.ctypes.data // BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT for array in self.arrays]
        )


def measure(request: dict[str, Any], memory: BenchmarkBuffers) -> list[float | None]:
    device = registry.Device[request["device"]]
    pointers = memory.addresses(request["buffers"])
    values = tuple(request["values"])
    try:
        executables = [device.compile(decode_source(found)) for found in request["sources"]]
    except GlassgradError:
        return [None] * len(request["sources"])
    calls = [Call(executable, pointers, values) for executable in executables]
    best = [inf] * len(calls)
    for _ in range(request["rounds"]):
        for number, call in enumerate(calls):
            best[number] = min(best[number], best_seconds(device, call, request["limit"] or inf))
    return list(best)


def best_seconds(device: Device, call: Call, limit: float) -> float:
    """The best of several runs. Short kernels are repeated natively, to hide the cost of Python."""
    once = device.prepare((call,))
    first = (
        min(run_seconds(once.run), run_seconds(once.run)) if limit == inf else run_seconds(once.run)
    )
    if first > HOPELESS_FACTOR * limit + MIN_BATCH_SECONDS:
        return first
    count = max(1, min(100, int(MIN_BATCH_SECONDS / max(first, 1e-9))))
    batch = once if count == 1 else device.prepare((call,) * count)
    best, spent = inf, 0.0
    for _ in range(MAX_RUNS):
        seconds = run_seconds(batch.run)
        best, spent = min(best, seconds / count), spent + seconds
        if spent > MIN_MEASURING_SECONDS:
            break
    return best


def run_seconds(run: Any) -> float:
    start = perf_counter()
    run()
    return perf_counter() - start


def answer(lines: Sequence[str] | IO[str], out: IO[str]) -> None:
    memory = BenchmarkBuffers()
    for line in lines:
        out.write(f"{json.dumps(measure(json.loads(line), memory))}\n")
        out.flush()


if __name__ == "__main__":
    answer(sys.stdin, sys.stdout)
