"""Names of dtypes -> NumPy's dtypes, what they can hold, and which dtype two of them meet in."""

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
# Half the distance between numbers around 0.
TINIEST = {
    "float64": 1e-300, "float32": 1e-37, "float16": 2.0**-24, "bfloat16": 1e-37,
    "fp8e4m3": 2.0**-9, "fp8e5m2": 2.0**-16,
}  # fmt: skip
# Values beyond these are not made: squares do not overflow, and float32 sums stay well conditioned.
LARGEST = {
    "float64": 1e5, "float32": 1e4, "float16": 200.0, "bfloat16": 1e4, "fp8e4m3": 16.0,
    "fp8e5m2": 200.0,
}  # fmt: skip
# Errors beyond these shares of a value make it useless.
LOOSEST = {
    "float64": 1e-10, "float32": 3e-4, "float16": 0.03, "bfloat16": 0.1, "fp8e4m3": 0.3,
    "fp8e5m2": 0.5,
}  # fmt: skip


def numpy_dtype(name: str) -> np.dtype:
    return NUMPY.get(name) or np.dtype(name)


def is_float(name: str) -> bool:
    return name in EPSILON


def kept_as(name: str) -> np.dtype:
    """In what the reference keeps values: floats in float64, others as they are."""
    return np.dtype(np.float64) if is_float(name) else np.dtype(name)


def rounded(x: Array, name: str) -> Array:
    """Floats as the dtype would hold them, in float64."""
    return x if name == "float64" else x.astype(numpy_dtype(name)).astype(np.float64)


def bits(name: str) -> int:
    return numpy_dtype(name).itemsize * 8


def promote(one: str, other: str) -> str:
    """The table of docs/dtypes.md, in rules."""
    if one == other or other == "bool":
        return one
    if one == "bool":
        return other
    if is_float(one) or is_float(other):
        return _floats(one, other) if is_float(one) and is_float(other) else _the_float(one, other)
    return _whole(one, other)


def _the_float(one: str, other: str) -> str:
    return one if is_float(one) else other


def _floats(one: str, other: str) -> str:
    wide = max(one, other, key=bits)
    if bits(one) != bits(other):
        return wide
    return "float32" if bits(wide) == 16 else "float16"


def _whole(one: str, other: str) -> str:
    if (one in INTS) == (other in INTS):
        return max(one, other, key=bits)
    signed, unsigned = (one, other) if one in INTS else (other, one)
    if unsigned == "uint64":
        return unsigned
    return max(signed, f"int{2 * bits(unsigned)}", key=bits)


def cast(x: Array, source: str, target: str) -> Array:
    """As docs/dtypes.md says: floats become ints towards zero, ints by their low bits."""
    if target == "bool":
        return x.astype(bool)
    if is_float(target):
        return x.astype(np.float64)
    if not is_float(source):
        return x.astype(numpy_dtype(target))
    limits = np.iinfo(target)
    return np.clip(np.trunc(x), limits.min, limits.max).astype(target)
