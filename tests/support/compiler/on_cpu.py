"""Elementwise functions of uops, run on NumPy arrays by the CPU device."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from glassgrad.base.dtype import DType
from glassgrad.devices.cpu.device import CpuDevice
from glassgrad.ir.uop import UOp
from glassgrad.memory.view import numpy_dtype
from support.compiler.hand_programs import address, elementwise, source_of


@cache
def cpu() -> CpuDevice:
    return CpuDevice()


def apply(
    function: Callable[..., UOp],
    arrays: list[np.ndarray],
    sources: list[DType],
    result: DType,
    width: int = 8,
) -> np.ndarray:
    """function of the arrays' elements, `width` lanes at a time. Arrays are repeated to fit."""
    size = -(-len(arrays[0]) // width) * width
    padded = [np.resize(array, size) for array in arrays]
    out = np.zeros(size, numpy_dtype(result))
    execute = cpu().compile(source_of(elementwise(function, sources, result, size, width)))
    execute((address(out), *map(address, padded)))
    return out[: len(arrays[0])]


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """The error in ulp; infinite where only one of the two is finite or nan."""
    with np.errstate(all="ignore"):
        rounded = want.astype(got.dtype)
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        off = np.abs(got.astype(want.dtype) - want) / np.spacing(np.abs(rounded)).astype(want.dtype)
        is_finite = np.isfinite(got) & np.isfinite(rounded)
    return np.where(same & ~is_finite, 0, np.where(is_finite, off, np.inf)).astype(np.float64)
