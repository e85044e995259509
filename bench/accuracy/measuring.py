"""A function and floats -> the largest error in ulp, and where it is."""

from __future__ import annotations

import numpy as np

from bench.accuracy.functions import Function
from glassgrad import Tensor

# dtype -> exponent of the smallest normal number, bits of the mantissa, the largest exponent
LAYOUT = {
    "float64": (-1022, 52, 1023),
    "float32": (-126, 23, 127),
    "float16": (-14, 10, 15),
    "bfloat16": (-126, 7, 127),
}
UNSIGNED = {"float32": np.uint32, "float64": np.uint64}


def samples(dtype: str, count: int, seed: int = 0) -> np.ndarray:
    """Floats of every size and sign, some dense near 0, and those where things happen."""
    rng = np.random.default_rng(seed)
    unsigned = UNSIGNED[dtype]
    anywhere = rng.integers(0, np.iinfo(unsigned).max, count, dtype=unsigned).view(dtype)
    usual = rng.uniform(-20, 20, count // 2).astype(dtype)
    limit = 120 if dtype == "float32" else 800
    wide = rng.uniform(-limit, limit, count // 2).astype(dtype)
    info = np.finfo(dtype)
    least = info.smallest_subnormal
    sizes = [0, least, 7 * least, info.tiny, info.tiny * 3, info.eps, 0.5, 1, 1.5, 2, 2.5, 3]
    sizes += [np.pi / 4, np.pi / 2, np.pi, 10, 1e6, info.max / 2, info.max, np.inf]
    sizes = np.array(sizes, dtype)
    with np.errstate(over="ignore"):
        near = [np.nextafter(sizes, toward, dtype=dtype) for toward in (0, np.inf)]
    special = np.concatenate([sizes, *near])
    with np.errstate(invalid="ignore"):
        return np.concatenate([special, -special, [np.nan], anywhere, usual, wide]).astype(dtype)


def ulp(value: np.ndarray, dtype: str) -> np.ndarray:
    """The distance of neighbours of this dtype at some size, also among denormals."""
    least, mantissa, most = LAYOUT[dtype]
    size = np.abs(value)
    _, exponent = np.frexp(np.where(np.isfinite(size), size, 1))
    exponent = np.where(size == 0, least, exponent)
    exponent = np.minimum(exponent - 1, most)  # beyond the largest number as before
    return np.ldexp(np.ones_like(value), np.maximum(exponent, least) - mantissa)


def errors(got: np.ndarray, wanted: np.ndarray, dtype: str, least: float = 0.0) -> np.ndarray:
    """How many ulp each result is off; infinitely many where only one of both is nan or inf.

    Infinity is what every value above the largest number rounds to.
    """
    unit = ulp(np.maximum(np.abs(wanted), least), dtype)
    _, mantissa, most = LAYOUT[dtype]
    limit = np.ldexp(np.longdouble(2) - np.ldexp(np.longdouble(1), -mantissa - 1), most)
    with np.errstate(all="ignore"):
        far = np.abs(got.astype(np.longdouble) - wanted) / unit
        is_over = np.isinf(got) & (np.abs(wanted) >= limit) & (np.sign(got) == np.sign(wanted))
        # An infinity is half an ulp beyond the limit; a result below it may round either way.
        is_near = np.isinf(got) & (np.sign(got) == np.sign(wanted)) & ~np.isinf(wanted)
        steps = np.abs(wanted) - limit
        far = np.where(is_near, np.maximum(-steps, 0) / unit + 0.5, far)
        far = np.where(np.isfinite(got) & np.isinf(wanted), np.inf, far)
    far = np.where(is_over | (got == wanted) | (np.isnan(got) & np.isnan(wanted)), 0, far)
    return np.where(np.isnan(got) ^ np.isnan(wanted), np.inf, far)


def measure(function: Function, x: np.ndarray) -> tuple[float, float]:
    """The largest error in ulp, and the argument that has it."""
    with np.errstate(all="ignore"):
        wanted = function.exact(x.astype(np.longdouble))
    found = errors(function.ours(Tensor(x)).numpy(), wanted, str(x.dtype), function.least)
    worst = int(np.argmax(found))
    return float(found[worst]), float(x[worst])


def measure_narrow(function: Function, dtype: str) -> float:
    """The largest error in ulp among all values of a float16 or bfloat16 argument.

    Their functions are computed in float32 and rounded, so errors are near half an ulp.
    """
    x = Tensor(np.arange(1 << 16, dtype=np.uint16)).bitcast(dtype)
    wide = x.cast("float64").numpy()
    with np.errstate(all="ignore"):
        wanted = function.exact(wide.astype(np.longdouble))
    got = function.ours(x).cast("float64").numpy()
    return float(errors(got, wanted, dtype, function.least).max())
