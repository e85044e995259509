"""float16, bfloat16 and fp8 tensors against ml_dtypes, bit by bit, compiled and interpreted."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from glassgrad import Tensor, dtypes
from glassgrad.base.dtype import DType

KINDS: dict[DType, Any] = {
    dtypes.float16: np.float16,
    dtypes.bfloat16: ml_dtypes.bfloat16,
    dtypes.fp8e4m3: ml_dtypes.float8_e4m3fn,
    dtypes.fp8e5m2: ml_dtypes.float8_e5m2,
}
UNSIGNED = {1: np.uint8, 2: np.uint16}
narrow = pytest.mark.parametrize("dtype", KINDS, ids=lambda dtype: dtype.name)
# The interpreter is slow: it gets every 37th value.
devices = pytest.mark.parametrize(("device", "step"), [("CPU", 1), ("PYTHON", 37)])


def every_value(dtype: DType) -> np.ndarray:
    """All 256 or 65,536 bit patterns."""
    return np.arange(1 << dtype.bits, dtype=UNSIGNED[dtype.itemsize]).view(KINDS[dtype])


def tensor(array: np.ndarray, dtype: DType, device: str) -> Tensor:
    raw = np.ascontiguousarray(array).view(UNSIGNED[dtype.itemsize])
    return Tensor(raw, device=device).bitcast(dtype)


def bits(found: Tensor) -> np.ndarray:
    """The contents of memory as an array of NumPy or ml_dtypes."""
    unsigned = {1: "uint8", 2: "uint16"}[found.dtype.itemsize]
    return found.bitcast(unsigned).numpy().view(KINDS[found.dtype])


def assert_same_bits(got: np.ndarray, wanted: np.ndarray) -> None:
    """Compare bits; all nans are equal."""
    assert got.dtype == wanted.dtype
    raw = UNSIGNED.get(got.itemsize, f"u{got.itemsize}")
    with np.errstate(invalid="ignore"):
        equal = (got.view(raw) == wanted.view(raw)) | ((got != got) & (wanted != wanted))
    assert equal.all(), (got[~equal][:5], wanted[~equal][:5])


def rounding_cases(dtype: DType) -> np.ndarray:
    """float32 values: those of the dtype, ties and their neighbours, extremes, and random bits."""
    with np.errstate(all="ignore"):
        values = np.unique(every_value(dtype).astype(np.float32))
        values = values[np.isfinite(values)]
        ties = ((values[1:].astype(np.float64) + values[:-1]) / 2).astype(np.float32)
        neighbours = [np.nextafter(ties, np.float32(side)) for side in (-np.inf, np.inf)]
        factors = np.float32([1.01, 1.03, 1.0624, 1.0625, 1.07, 1.2, 1.26, 2, 1e9])
        beyond = values[-1] * factors
    ends = np.float32([0.0, 1e-45, 1e-40, 1e-30, 3.4e38, np.inf, np.nan])
    random = np.random.default_rng(1).integers(0, 1 << 32, 20_000, dtype=np.uint32)
    parts = [values, ties, *neighbours, beyond, -beyond, ends, -ends, random.view(np.float32)]
    return np.concatenate(parts).astype(np.float32)


@narrow
@devices
def test_every_bit_pattern_converts_to_its_float(dtype: DType, device: str, step: int) -> None:
    values = every_value(dtype)[::step]
    for wide in (np.float32, np.float64):
        found = tensor(values, dtype, device).cast(np.dtype(wide).name).numpy()
        with np.errstate(invalid="ignore"):  # signalling nans become quiet ones
            assert_same_bits(found, values.astype(wide))


@narrow
@devices
def test_float32_rounds_to_nearest_and_ties_to_even(dtype: DType, device: str, step: int) -> None:
    values = rounding_cases(dtype)[:: step * 5 if device == "PYTHON" else 1]
    with np.errstate(all="ignore"):
        wanted = values.astype(KINDS[dtype])
    assert_same_bits(bits(Tensor(values, device=device).cast(dtype)), wanted)


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
}
COMPARE = [operator.lt, operator.le, operator.eq, operator.ne]


def operands(dtype: DType, step: int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of an fp8; every 16-bit value with two others."""
    values = every_value(dtype)
    if dtype.bits == 8:
        x, y = (side.ravel()[::step] for side in np.meshgrid(values, values))
        return x, y
    random = np.random.default_rng(2)
    x = np.concatenate([values, values])
    return x[::step], np.concatenate([random.permutation(values), values[::-1]])[::step]


@narrow
@devices
@pytest.mark.parametrize("name", BINARY)
def test_arithmetic_has_the_bits_of_the_narrow_format(
    dtype: DType, device: str, step: int, name: str
) -> None:
    x, y = operands(dtype, step * 4 if device == "PYTHON" else 1)
    with np.errstate(all="ignore"):
        wanted = BINARY[name](x, y)
    assert_same_bits(bits(BINARY[name](tensor(x, dtype, device), tensor(y, dtype, device))), wanted)


@narrow
@devices
def test_comparisons_and_maximum(dtype: DType, device: str, step: int) -> None:
    x, y = operands(dtype, step * 8 if device == "PYTHON" else 1)
    left, right = tensor(x, dtype, device), tensor(y, dtype, device)
    wide = x.astype(np.float32), y.astype(np.float32)
    for compare in COMPARE:
        assert (compare(left, right).numpy() == compare(*wide)).all()
    found = left.maximum(right).cast("float32").numpy()
    wanted = np.maximum(*wide)
    assert ((found == wanted) | (np.isnan(found) & np.isnan(wanted))).all()


UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sqrt": np.sqrt,
    "reciprocal": lambda x: np.float32(1) / x,
    "neg": np.negative,
    "trunc": np.trunc,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.round,
    "square": np.square,
}


@narrow
@devices
@pytest.mark.parametrize("name", UNARY)
def test_unary_functions_are_rounded_once(dtype: DType, device: str, step: int, name: str) -> None:
    values = every_value(dtype)[::step]
    with np.errstate(all="ignore"):
        wanted = UNARY[name](values.astype(np.float32)).astype(KINDS[dtype])
    found = bits(getattr(tensor(values, dtype, device), name)())
    zero = wanted == 0  # the sign of zero is unspecified
    assert (found[zero] == 0).all()
    assert_same_bits(found[~zero], wanted[~zero])


@narrow
def test_sums_accumulate_in_float32(dtype: DType) -> None:
    values = np.full(4096, 0.25, np.float32).astype(KINDS[dtype])
    total = tensor(values, dtype, "CPU").sum()
    wanted = np.float32(1024).astype(KINDS[dtype])
    assert total.dtype is dtype
    assert_same_bits(bits(total.reshape(1)), np.array([wanted]))


@narrow
def test_matrix_products_are_rounded_once(dtype: DType) -> None:
    random = np.random.default_rng(3)
    x, y = (random.integers(-8, 9, shape).astype(KINDS[dtype]) for shape in ((5, 64), (64, 7)))
    wanted = (x.astype(np.float32) @ y.astype(np.float32)).astype(KINDS[dtype])
    assert_same_bits(bits(tensor(x, dtype, "CPU") @ tensor(y, dtype, "CPU")), wanted)


@narrow
def test_casts_between_narrow_formats_round_once(dtype: DType) -> None:
    values = every_value(dtype)
    for other, kind in KINDS.items():
        with np.errstate(all="ignore"):
            wanted = values.astype(np.float32).astype(kind)
        assert_same_bits(bits(tensor(values, dtype, "CPU").cast(other)), wanted)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "logsumexp", "sum"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "fp8e4m3", "fp8e5m2"])
def test_reductions_after_an_in_place_write(name: str, dtype: str) -> None:
    """The written values stay in registers of the kernel that reduces them."""
    x = Tensor([1.0, -2.0, 3.0, 0.5]).cast(dtype).realize()
    x *= 2
    got = getattr(x, name)().cast("float32").item()
    wide = Tensor([2.0, -4.0, 6.0, 1.0])
    wanted = getattr(wide, name)().cast(dtype).cast("float32").item()
    assert got == wanted
