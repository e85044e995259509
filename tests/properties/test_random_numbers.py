"""Random numbers: known bits, distributions, and independence of order, device and threads."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassgrad import Context, Tensor

MASK = 0xFFFFFFFF


def threefry(counter: int, key: int) -> int:
    """Reference of Threefry-2x32-20 for Python ints."""
    first, second = key & MASK, key >> 32
    keys = [first, second, 0x1BD11BDA ^ first ^ second]
    x, y = (counter + first) & MASK, ((counter >> 32) + second) & MASK
    for number in range(20):
        x = (x + y) & MASK
        rotation = (13, 15, 26, 6, 17, 29, 16, 24)[number % 8]
        y = ((y << rotation | y >> (32 - rotation)) & MASK) ^ x
        if number % 4 == 3:
            step = number // 4 + 1
            x, y = (x + keys[step % 3]) & MASK, (y + keys[(step + 1) % 3] + step) & MASK
    return x | y << 32


TEST_VECTORS = {  # (counter, key) -> result, of the reference implementation
    (0, 0): 0x99BA4EFE6B200159,
    (2**64 - 1, 2**64 - 1): 0xBB002BE71CB996FC,
    (0x85A308D3243F6A88, 0x0370734413198A2E): 0x483DF7A0C4923A9C,
}


@pytest.mark.parametrize("device", ["CPU", "PYTHON"])
def test_threefry_equals_the_published_vectors(device: str) -> None:
    counters, keys = np.array(list(TEST_VECTORS), np.uint64).T.copy()
    found = Tensor(counters, device=device).threefry(Tensor(keys, device=device))
    assert found.tolist() == list(TEST_VECTORS.values())
    assert [threefry(*pair) for pair in TEST_VECTORS] == list(TEST_VECTORS.values())


def test_number_i_is_threefry_of_counter_i_and_the_seed() -> None:
    Tensor.manual_seed(42)
    first, second = Tensor.rand(2, 3), Tensor.rand(5, dtype="float64")
    words = [threefry(i, 42) for i in range(11)]
    assert second.tolist() == [(word >> 11) * 2.0**-53 for word in words[6:]]
    assert first.flatten().tolist() == [(word >> 40) * 2.0**-24 for word in words[:6]]


def one_of_each(seed: int) -> list[Tensor]:
    """A tensor of each kind, in a fixed order."""
    Tensor.manual_seed(seed)
    with Context(TRAINING=1):
        return [
            Tensor.rand(7, 3), Tensor.randn(5), Tensor.randint(6, low=-3, high=9),
            Tensor.uniform(4, low=-1, high=2), Tensor.randperm(9), Tensor.ones(12).dropout(0.5),
            Tensor([0.2, 0.8]).multinomial(4, replacement=True), Tensor.rand(3, dtype="float16"),
            Tensor.kaiming_normal(2, 3), Tensor.glorot_uniform(3, 2),
        ]  # fmt: skip


@settings(max_examples=15)
@given(st.permutations(range(10)), st.integers(0, 2**40))
def test_values_do_not_depend_on_the_order_of_realize(order: list[int], seed: int) -> None:
    wanted = [tensor.tolist() for tensor in one_of_each(seed)]
    tensors = one_of_each(seed)
    found = {number: tensors[number].tolist() for number in order}
    assert [found[number] for number in range(10)] == wanted
    together = one_of_each(seed)
    together[0].realize(*together[1:])
    assert [tensor.tolist() for tensor in together] == wanted


def test_values_are_the_same_on_every_device() -> None:
    wanted = [tensor.numpy() for tensor in one_of_each(3)]
    with Context(DEV="PYTHON"):
        tensors = one_of_each(3)
        assert {tensor.device for tensor in tensors if tensor.shape == (5,)} == {"PYTHON"}
        found = [tensor.numpy() for tensor in tensors]
    for got, want in zip(found, wanted, strict=True):
        # Bits, uniform numbers and indices are equal; log and cos may differ by an ulp.
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)
    for index in (0, 2, 3, 4, 5, 6, 7, 9):
        np.testing.assert_array_equal(found[index], wanted[index])


SCRIPT = """
import hashlib
from glassgrad import Tensor
Tensor.manual_seed(11)
made = [Tensor.rand(300, 1000), Tensor.randn(250_001), Tensor.randint(100_003, high=1000)]
print(hashlib.sha256(b"".join(x.numpy().tobytes() for x in made)).hexdigest())
"""


def test_values_are_the_same_for_any_number_of_threads() -> None:
    root = str(Path(__file__).parents[2])
    found = set()
    for threads in (1, 2, 5):
        environment = {**os.environ, "THREADS": str(threads), "PYTHONPATH": root}
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, check=True
        )
        found.add(run.stdout)
    assert len(found) == 1


# ---------------------------------------------------------------------- distributions


def distance(values: np.ndarray, cumulative: Callable[[np.ndarray], np.ndarray]) -> float:
    """The Kolmogorov-Smirnov statistic, times sqrt(n)."""
    wanted = cumulative(np.sort(values.astype(np.float64)))
    steps = np.arange(values.size + 1) / values.size
    gap = max(np.abs(wanted - steps[1:]).max(), np.abs(wanted - steps[:-1]).max())
    return float(gap * math.sqrt(values.size))


def normal(x: np.ndarray) -> np.ndarray:
    return np.array([0.5 * (1 + math.erf(value / math.sqrt(2))) for value in x])


LIMIT = 1.95  # exceeded by one seed in a thousand
COUNT = 50_000

DISTRIBUTIONS: dict[str, tuple[Callable[[], Tensor], Callable[[np.ndarray], np.ndarray]]] = {
    "rand": (lambda: Tensor.rand(COUNT), lambda x: x),
    "rand float64": (lambda: Tensor.rand(COUNT, dtype="float64"), lambda x: x),
    "uniform": (lambda: Tensor.uniform(COUNT, low=-3, high=5), lambda x: (x + 3) / 8),
    "randn": (lambda: Tensor.randn(COUNT), normal),
    "randn float64": (lambda: Tensor.randn(COUNT, dtype="float64"), normal),
    "normal": (lambda: Tensor.normal(COUNT, mean=2, std=3), lambda x: normal((x - 2) / 3)),
    "rand_like": (lambda: Tensor.zeros(COUNT).rand_like(), lambda x: x),
    "randn_like": (lambda: Tensor.zeros(COUNT).randn_like(), normal),
    "scaled_uniform": (
        lambda: Tensor.scaled_uniform(COUNT) * math.sqrt(COUNT),
        lambda x: (x + 1) / 2,
    ),
    "glorot_uniform": (
        lambda: Tensor.glorot_uniform(200, 250) / math.sqrt(6 / 450),
        lambda x: (x + 1) / 2,
    ),
    "kaiming_normal": (
        lambda: Tensor.kaiming_normal(200, 250) / math.sqrt(2 / (1 + 0.01**2) / 250),
        normal,
    ),
    "kaiming_uniform": (
        lambda: Tensor.kaiming_uniform(200, 250) / math.sqrt(6 / (1 + 0.01**2) / 250),
        lambda x: (x + 1) / 2,
    ),
}


@pytest.mark.parametrize("seed", [0, 1, 2**33 + 5])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions(name: str, seed: int) -> None:
    make, cumulative = DISTRIBUTIONS[name]
    Tensor.manual_seed(seed)
    assert distance(make().flatten().numpy(), cumulative) < LIMIT


def test_the_statistic_detects_a_wrong_distribution() -> None:
    Tensor.manual_seed(0)
    assert distance(Tensor.rand(COUNT).numpy() * 1.02, lambda x: np.clip(x, 0, 1)) > LIMIT


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """The chi-square statistic, in standard deviations from its mean."""
    wanted = counts.sum() * probabilities
    degrees = len(probabilities) - 1
    return float((((counts - wanted) ** 2 / wanted).sum() - degrees) / math.sqrt(2 * degrees))


@pytest.mark.parametrize(("low", "high"), [(0, 2), (-3, 4), (0, 1000)])
@pytest.mark.parametrize("dtype", ["int16", "int32", "uint64"])
def test_randint_is_uniform(low: int, high: int, dtype: str) -> None:
    if low < 0 and dtype.startswith("u"):
        low, high = low + 3, high + 3
    Tensor.manual_seed(0)
    values = Tensor.randint(COUNT, low=low, high=high, dtype=dtype).numpy().astype(int)
    counts = np.bincount(values - low, minlength=high - low)
    assert len(counts) == high - low
    assert abs(chi_square(counts, np.full(high - low, 1 / (high - low)))) < 4


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [
        (0, 2**32 - 1, "uint32"),
        (-(2**40) - 7, 2**41, "int64"),
        (-(2**62), 2**62, "int64"),
        (-(2**63), 2**63, "int64"),
        (2**63 - 5, 2**64, "uint64"),
        (0, 2**64, "uint64"),
    ],
)
def test_randint_covers_wide_ranges(low: int, high: int, dtype: str) -> None:
    Tensor.manual_seed(0)
    values = Tensor.randint(COUNT, low=low, high=high, dtype=dtype).numpy()
    assert len(np.unique(values)) > COUNT * 0.99
    assert low <= int(values.min()) and int(values.max()) < high
    assert distance(values, lambda x: (x - low) / (high - low)) < LIMIT


@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial_follows_the_weights(replacement: bool) -> None:
    Tensor.manual_seed(4)
    probabilities = np.array([0.1, 0.2, 0.3, 0.4])
    drawn = Tensor(np.tile(probabilities, (5_000, 1))).multinomial(1, replacement).numpy()
    assert abs(chi_square(np.bincount(drawn[:, 0], minlength=4), probabilities)) < 4


def test_neighbouring_random_numbers_are_uncorrelated() -> None:
    Tensor.manual_seed(0)
    x, y = (Tensor.rand(COUNT, dtype="float64").numpy() for _ in range(2))
    pairs = {
        "same index": (x, y),
        "next index": (x[1:], x[:-1]),
        "1000 apart": (x[1000:], x[:-1000]),
    }
    for name, (left, right) in pairs.items():
        assert abs(np.corrcoef(left, right)[0, 1]) < 4 / math.sqrt(COUNT), name
