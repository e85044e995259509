"""docs/accuracy.md: error bounds of functions and sums, and bitwise reproducibility."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bench.accuracy.determinism import RESULTS, digests_of
from bench.accuracy.exact import HAS_LONG
from bench.accuracy.functions import FUNCTIONS, NARROW_BOUND, Function
from bench.accuracy.measuring import errors, measure, measure_narrow, samples
from bench.accuracy.page import bounds
from bench.accuracy.sums import BOUND, KINDS, SUMS, Sum

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"
NAMES = [function.name for function in FUNCTIONS]


@pytest.mark.parametrize("function", FUNCTIONS, ids=NAMES)
def test_float32_functions_meet_their_bounds(function: Function) -> None:
    worst, argument = measure(function, samples("float32", 3000, seed=11))
    assert worst <= function.float32, f"{worst} ulp at {argument!r}"


@pytest.mark.skipif(not HAS_LONG, reason="long double is no wider than double here")
@pytest.mark.parametrize("function", FUNCTIONS, ids=NAMES)
def test_float64_functions_meet_their_bounds(function: Function) -> None:
    worst, argument = measure(function, samples("float64", 3000, seed=12))
    assert worst <= function.float64, f"{worst} ulp at {argument!r}"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["exp", "log", "sin", "rsqrt", "tanh", "silu", "gelu"])
def test_functions_of_16_bit_floats_are_rounded_once(name: str, dtype: str) -> None:
    (function,) = [function for function in FUNCTIONS if function.name == name]
    assert measure_narrow(function, dtype) <= NARROW_BOUND


def test_errors_are_counted_in_ulp() -> None:
    one = np.longdouble(1)
    expected = np.array([1, 1, 0, np.inf, np.nan, 3.5e38, one + 2.0**-24], np.longdouble)
    got = np.array([1 + 2.0**-23, 1, 2.0**-149, np.inf, 1, np.inf, 1], np.float32)
    assert errors(got, expected, "float32").tolist() == [1, 0, 1, 0, np.inf, 0, 0.5]
    assert errors(got[2:3], expected[2:3], "float32", ulp_floor=1.0).tolist() == [2.0**-126]


@pytest.mark.parametrize("reduction", SUMS, ids=[reduction.name for reduction in SUMS])
@pytest.mark.parametrize("kind", KINDS)
def test_sums_meet_the_bound_at_any_length(reduction: Sum, kind: str) -> None:
    for count in (1000, 300_000):
        assert reduction.error(count, kind) <= BOUND


def test_the_page_states_the_bounds() -> None:
    text = PAGE.read_text()
    for function in FUNCTIONS:
        assert bounds(function) in text
    assert f"{BOUND:.1e}" in text
    assert f"{NARROW_BOUND:g} ulp" in text


def test_the_same_program_gives_the_same_bits_in_every_process() -> None:
    names = [
        "sum of all, (4096, 1024)",
        "sum of columns, (2048, 2048)",
        "matrix product, 1000 x 333 x 77",
        "softmax, (512, 1000)",
        "gradient of two layers",
    ]
    assert set(names) <= set(RESULTS)
    command = [sys.executable, "-m", "bench.accuracy.determinism", *names]
    options = {"env": os.environ | {"THREADS": "2"}, "cwd": PAGE.parents[1]}
    runs = [
        subprocess.run(command, capture_output=True, text=True, check=True, **options)
        for _ in range(2)
    ]
    first, second = [digests_of(run.stdout) for run in runs]
    assert list(first) == names
    assert first == second
