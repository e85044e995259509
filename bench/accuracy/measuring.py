"""Error measurement: the largest error of a function in ulp, and the argument that has it."""

from __future__ import annotations

import numpy as np

from bench.accuracy.functions import Function
from glassgrad import Tensor

# dtype -> exponent of the smallest normal number, bits of the mantissa, largest exponent
FLOAT_LAYOUT = {
    "float64": (-1022, 52, 1023),
    "float32": (-126, 23, 127),
    "float16": (-14, 10, 15),
    "bfloat16": (-126, 7, 127),
}
UNSIGNED = {"float32": np.uint32, "float64": np.uint64}


def samples(dtype: str, count: int, seed: int = 0) -> np.ndarray:
    """Arguments: random bits, uniform numbers, and special values with their neighbours."""
    rng = np.random.default_rng(seed)
    unsigned = UNSIGNED[dtype]
    random_bits = rng.integers(0, np.iinfo(unsigned).max, count, dtype=unsigned).view(dtype)
    narrow = rng.uniform(-20, 20, count // 2).astype(dtype)
    limit = 120 if dtype == "float32" else 800
    wide = rng.uniform(-limit, limit, count // 2).astype(dtype)
    info = np.finfo(dtype)
    least = info.smallest_subnormal
    sizes = [0, least, 7 * least, info.tiny, info.tiny * 3, info.eps, 0.5, 1, 1.5, 2, 2.5, 3]
    sizes += [np.pi / 4, np.pi / 2, np.pi, 10, 1e6, info.max / 2, info.max, np.inf]
    sizes = np.array(sizes, dtype)
    with np.errstate(over="ignore"):
        neighbours = [np.nextafter(sizes, toward, dtype=dtype) for toward in (0, np.inf)]
    special = np.concatenate([sizes, *neighbours])
    with np.errstate(invalid="ignore"):
        parts = [special, -special, [np.nan], random_bits, narrow, wide]
        return np.concatenate(parts).astype(dtype)


def ulp(value: np.ndarray, dtype: str) -> np.ndarray:
    """The distance between neighbouring numbers of a dtype near a value, subnormals included."""
    min_exponent, mantissa, max_exponent = FLOAT_LAYOUT[dtype]
    size = np.abs(value)
    _, exponent = np.frexp(np.where(np.isfinite(size), size, 1))
    exponent = np.where(size == 0, min_exponent, exponent)
    exponent = np.clip(exponent - 1, min_exponent, max_exponent)
    return np.ldexp(np.ones_like(value), exponent - mantissa)


def errors(got: np.ndarray, expected: np.ndarray, dtype: str, ulp_floor: float = 0.0) -> np.ndarray:
    """The error of each result in ulp; inf where only one of both values is nan or inf.

    Infinity is correct for every value that rounds to a number above the largest one.
    """
    unit = ulp(np.maximum(np.abs(expected), ulp_floor), dtype)
    _, mantissa, max_exponent = FLOAT_LAYOUT[dtype]
    limit = np.ldexp(np.longdouble(2) - np.ldexp(np.longdouble(1), -mantissa - 1), max_exponent)
    with np.errstate(all="ignore"):
        error = np.abs(got.astype(np.longdouble) - expected) / unit
        overflows = (
            np.isinf(got) & (np.abs(expected) >= limit) & (np.sign(got) == np.sign(expected))
        )
        # An infinity is half an ulp beyond the limit; a result below it may round either way.
        may_overflow = np.isinf(got) & (np.sign(got) == np.sign(expected)) & ~np.isinf(expected)
        excess = np.abs(expected) - limit
        error = np.where(may_overflow, np.maximum(-excess, 0) / unit + 0.5, error)
        error = np.where(np.isfinite(got) & np.isinf(expected), np.inf, error)
    error = np.where(overflows | (got == expected) | (np.isnan(got) & np.isnan(expected)), 0, error)
    return np.where(np.isnan(got) ^ np.isnan(expected), np.inf, error)


def measure(function: Function, x: np.ndarray) -> tuple[float, float]:
    """The largest error in ulp, and the argument that has it."""
    with np.errstate(all="ignore"):
        expected = function.exact(x.astype(np.longdouble))
    ulps = errors(function.ours(Tensor(x)).numpy(), expected, str(x.dtype), function.ulp_floor)
    worst = int(np.argmax(ulps))
    return float(ulps[worst]), float(x[worst])


def measure_narrow(function: Function, dtype: str) -> float:
    """The largest error in ulp over all float16 or bfloat16 arguments.

    Functions are computed in float32 and rounded once, so errors are about half an ulp.
    """
    x = Tensor(np.arange(1 << 16, dtype=np.uint16)).bitcast(dtype)
    wide = x.cast("float64").numpy()
    with np.errstate(all="ignore"):
        expected = function.exact(wide.astype(np.longdouble))
    got = function.ours(x).cast("float64").numpy()
    return float(errors(got, expected, dtype, function.ulp_floor).max())
