"""Lines of JSON -> lines of JSON: a program that compiles sources and says what they take.

`engine/tune/benchmark_client.py` is at the other end, and ends this process if it does not answer.
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
from glassgrad.engine.cache.sources import read_source

ENOUGH = 0.02  # seconds of runs for one measurement
LONG = 2e-4  # seconds that a run should take at least, or several are made of one
MOST_RUNS = 25
FAR_OFF = 3.0  # times as slow as the best one: not worth a second run
SOME_FLOAT = 0x3C  # every byte of it: an ordinary number in all formats
ROOM = 64  # bytes between buffers


class Memory:
    """Scratch buffers of real size, kept from one measurement to the next."""

    def __init__(self) -> None:
        self.wanted: list[Any] = []
        self.arrays: list[np.ndarray[Any, Any]] = []

    def addresses(self, wanted: list[Any]) -> tuple[int, ...]:
        """Floats are numbers like others, ints are zeros, which are indices of everything."""
        if wanted != self.wanted:
            self.wanted, self.arrays = wanted, []
            for nbytes, is_float in wanted:
                self.arrays.append(np.full(nbytes + 2 * ROOM, SOME_FLOAT * is_float, np.uint8))
        return tuple([-(-array.ctypes.data // ROOM) * ROOM for array in self.arrays])


def measure(request: dict[str, Any], memory: Memory) -> list[float | None]:
    device = registry.Device[request["device"]]
    pointers = memory.addresses(request["buffers"])
    values = tuple(request["values"])
    try:
        executables = [device.compile(read_source(found)) for found in request["sources"]]
    except GlassgradError:
        return [None] * len(request["sources"])
    calls = [Call(executable, pointers, values) for executable in executables]
    best = [inf] * len(calls)
    for _ in range(request["rounds"]):
        for number, call in enumerate(calls):
            best[number] = min(best[number], seconds_of(device, call, request["limit"] or inf))
    return list(best)


def seconds_of(device: Device, call: Call, limit: float) -> float:
    """The best of some runs. Short ones are repeated natively, so that Python's part is small."""
    once = device.prepare((call,))
    first = min(timed(once.run), timed(once.run)) if limit == inf else timed(once.run)
    if first > FAR_OFF * limit + LONG:
        return first
    count = max(1, min(100, int(LONG / max(first, 1e-9))))
    batch = once if count == 1 else device.prepare((call,) * count)
    best, spent = inf, 0.0
    for _ in range(MOST_RUNS):
        seconds = timed(batch.run)
        best, spent = min(best, seconds / count), spent + seconds
        if spent > ENOUGH:
            break
    return best


def timed(run: Any) -> float:
    start = perf_counter()
    run()
    return perf_counter() - start


def answer(lines: Sequence[str] | IO[str], out: IO[str]) -> None:
    memory = Memory()
    for line in lines:
        out.write(f"{json.dumps(measure(json.loads(line), memory))}\n")
        out.flush()


if __name__ == "__main__":
    answer(sys.stdin, sys.stdout)
