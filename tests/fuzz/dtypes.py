"""Dtypes by name: those of NumPy, their precision and range, promotion and casts."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from fuzz.programs import Array

NUMPY = {
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "fp8e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "fp8e5m2": np.dtype(ml_dtypes.float8_e5m2),
}
INTS = ("int8", "int16", "int32", "int64")
UINTS = ("uint8", "uint16", "uint32", "uint64")
FLOATS = ("fp8e4m3", "fp8e5m2", "float16", "bfloat16", "float32", "float64")

# The distance from 1 to the next number; integers have none.
EPSILON = {
    "float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7,
    "fp8e4m3": 2.0**-3, "fp8e5m2": 2.0**-2,
}  # fmt: skip
# An absolute error that is always allowed; for narrow floats half the distance of subnormals.
MIN_ERROR = {
    "float64": 1e-300, "float32": 1e-37, "float16": 2.0**-24, "bfloat16": 1e-37,
    "fp8e4m3": 2.0**-9, "fp8e5m2": 2.0**-16,
}  # fmt: skip
# Larger values are discarded: squares must not overflow, and float32 sums be well conditioned.
MAX_VALUE = {
    "float64": 1e5, "float32": 1e4, "float16": 200.0, "bfloat16": 1e4, "fp8e4m3": 16.0,
    "fp8e5m2": 200.0,
}  # fmt: skip
# Values with larger relative errors are discarded as ill-conditioned.
MAX_RELATIVE_ERROR = {
    "float64": 1e-10, "float32": 3e-4, "float16": 0.03, "bfloat16": 0.1, "fp8e4m3": 0.3,
    "fp8e5m2": 0.5,
}  # fmt: skip


def numpy_dtype(name: str) -> np.dtype:
    return NUMPY.get(name) or np.dtype(name)


def is_float(name: str) -> bool:
    return name in EPSILON


def reference_dtype(name: str) -> np.dtype:
    """The dtype of reference values: float64 for floats, otherwise the dtype itself."""
    return np.dtype(np.float64) if is_float(name) else np.dtype(name)


def round_to(x: Array, name: str) -> Array:
    """Round to a dtype; the result is float64."""
    return x if name == "float64" else x.astype(numpy_dtype(name)).astype(np.float64)


def bits(name: str) -> int:
    return numpy_dtype(name).itemsize * 8


def promote(one: str, other: str) -> str:
    """The promotion table of docs/dtypes.md as rules."""
    if one == other or other == "bool":
        return one
    if one == "bool":
        return other
    if is_float(one) or is_float(other):
        return _floats(one, other) if is_float(one) and is_float(other) else _the_float(one, other)
    return _ints(one, other)


def _the_float(one: str, other: str) -> str:
    return one if is_float(one) else other


def _floats(one: str, other: str) -> str:
    wide = max(one, other, key=bits)
    if bits(one) != bits(other):
        return wide
    return "float32" if bits(wide) == 16 else "float16"


def _ints(one: str, other: str) -> str:
    if (one in INTS) == (other in INTS):
        return max(one, other, key=bits)
    signed, unsigned = (one, other) if one in INTS else (other, one)
    if unsigned == "uint64":
        return unsigned
    return max(signed, f"int{2 * bits(unsigned)}", key=bits)


def cast(x: Array, source: str, target: str) -> Array:
    """A cast of docs/dtypes.md: floats are truncated and clipped to ints, ints wrap around."""
    if target == "bool":
        return x.astype(bool)
    if is_float(target):
        return x.astype(np.float64)
    if not is_float(source):
        return x.astype(numpy_dtype(target))
    limits = np.iinfo(target)
    return np.clip(np.trunc(x), limits.min, limits.max).astype(target)
