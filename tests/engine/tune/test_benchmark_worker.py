"""The benchmark worker, called as a function."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import numpy as np
from support.compiler.nests import kernel_of
from support.compiler.schedules import memory

from glassgrad.devices.registry import Device
from glassgrad.engine.cache.sources import encode_source
from glassgrad.engine.pipeline import write_source
from glassgrad.engine.tune.benchmark_worker import BenchmarkBuffers, answer


def request(count: int = 1, **changes: Any) -> str:
    source = write_source(kernel_of(memory(64) + 1), Device["CPU"].target)
    found = {"device": "CPU", "sources": [encode_source(source)] * count, "limit": None}
    found |= {"buffers": [(256, True), (256, True)], "values": [], "rounds": 1}
    return json.dumps(found | changes)


def test_every_line_gets_an_answer() -> None:
    out = StringIO()
    answer([request(1), request(2), request(1, limit=1e-12)], out)
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [len(found) for found in answers] == [1, 2, 1]
    assert all(0 < seconds < 1 for found in answers for seconds in found)


def test_a_source_that_does_not_compile_has_no_time() -> None:
    source = json.loads(request())["sources"][0] | {"text": "nonsense"}
    out = StringIO()
    answer([request(sources=[source])], out)
    assert json.loads(out.getvalue()) == [None]


def test_ints_are_valid_indices_and_floats_ordinary_numbers() -> None:
    found = BenchmarkBuffers()
    floats, ints = found.addresses([[64, True], [64, False]])
    assert floats % 64 == ints % 64 == 0
    for dtype in (np.float16, np.float32, np.float64):
        number = found.arrays[0].view(dtype)[0]
        assert np.isfinite(number)
        assert abs(number) >= np.finfo(dtype).tiny
    assert not found.arrays[1].any()


def test_buffers_are_kept_for_the_next_measurement() -> None:
    found = BenchmarkBuffers()
    first = found.addresses([[64, True]])
    assert found.addresses([[64, True]]) == first
    assert len(found.addresses([[64, True], [8, False]])) == 2
