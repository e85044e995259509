"""Ops and numbers worth trying: for every dtype its ends, and where machines differ."""

from __future__ import annotations

import numpy as np

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import Ops
from glassgrad.memory.view import numpy_dtype

INTS = list(dtypes.ints)
FLOATS = [dtypes.float32, dtypes.float64]
ORDINARY = [*INTS, *FLOATS, dtypes.bool]
ON_ALL = [Ops.ADD, Ops.SUB, Ops.MUL, Ops.MAX, Ops.MIN, Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE]
ON_INTS = [Ops.CDIV, Ops.CMOD, Ops.SHL, Ops.SHR, Ops.AND, Ops.OR, Ops.XOR]
CASES = (
    [(op, dtype) for op in ON_ALL for dtype in ORDINARY]
    + [(op, dtype) for op in ON_INTS for dtype in INTS]
    + [(op, dtypes.bool) for op in (Ops.AND, Ops.OR, Ops.XOR)]
    + [(Ops.FDIV, dtype) for dtype in FLOATS]
    + [(op, dtype) for op in (Ops.NEG, Ops.TRUNC) for dtype in (*INTS, *FLOATS)]
    + [(op, dtype) for op in (Ops.RECIPROCAL, Ops.SQRT) for dtype in FLOATS]
)


def interesting(dtype: DType) -> np.ndarray:
    if dtype.kind == "bool":
        return np.array([False, True])
    if dtype.kind == "float":
        numbers = [
            0.0,
            1,
            2.5,
            3.7,
            1e10,
            1e-10,
            127.5,
            255.9,
            2.0**31,
            2.0**63,
            np.inf,
            1e38,
            1e-42,
        ]
        return np.array([*numbers, *(-x for x in numbers), np.nan], numpy_dtype(dtype))
    low, high = int(dtypes.min(dtype)), int(dtypes.max(dtype))
    small = [n for n in (-7, -3, -2, -1, 0, 1, 2, 3, 5, 7, 8, 31, 63, 64, 100) if low <= n <= high]
    return np.array([low, low + 1, high - 1, high, *small], numpy_dtype(dtype))


def pairs(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.meshgrid(interesting(dtype), interesting(dtype))
    return x.ravel(), y.ravel()


def same(got: np.ndarray, want: np.ndarray) -> None:
    equal = (got == want) | ((got != got) & (want != want))
    assert equal.all(), (got[~equal][:5], want[~equal][:5])
