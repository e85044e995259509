"""What was found against what is wanted -> what is wrong, in words."""

from __future__ import annotations

import numpy as np

from fuzz.dtypes import is_float, numpy_dtype
from fuzz.programs import Array, Program
from fuzz.reference import Slope, State
from fuzz.stochastic import Shown, tolerance


def difference(name: str, found: Array, wanted: Shown) -> str | None:
    """What is wrong with one value; None if nothing is."""
    dtype = wanted.dtype
    if found.shape != wanted.shape:
        return f"{name} has the shape {found.shape}, not {wanted.shape}"
    if found.dtype != numpy_dtype(dtype):
        return f"{name} is {found.dtype}, not {dtype}"
    lanes = wanted.read()
    if not is_float(dtype):
        wrong = found != lanes[0]
        allowed = np.zeros(wrong.shape)
    else:
        allowed = tolerance(lanes, dtype)
        with np.errstate(invalid="ignore"):
            wrong = ~(np.abs(found.astype(np.float64) - lanes[0]) <= allowed)
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    where = f"{name}[{', '.join(map(str, at))}]" if at else name
    slack = f" ± {allowed[at]:.3g}" if is_float(dtype) else ""
    count = f"{int(wrong.sum())} of {wrong.size} wrong"
    return f"{where} is {found[at]!s}, not {lanes[0][at]!s}{slack} ({count})"


def value_differences(program: Program, found: list[Array | None], state: State) -> list[str]:
    wrong = []
    for name, array in zip(program.outputs, found, strict=False):
        message = "is None" if array is None else difference(name, array, state[name])
        if message:
            wrong.append(message)
    return wrong


def gradient_differences(
    program: Program, found: list[Array | None], slopes: list[Slope]
) -> list[str]:
    """Each gradient along the direction in which its parameter was moved."""
    wrong = []
    gradients = found[len(program.outputs) :]
    for slope, gradient in zip(slopes, gradients, strict=True):
        parts = np.zeros(1)
        if gradient is not None:
            if gradient.shape != slope.direction.shape:
                wrong.append(f"{slope.parameter}.grad has the shape {gradient.shape}")
                continue
            parts = gradient.astype(np.float64) * slope.direction
        allowed = slope.error + 1e-4 * float(np.abs(parts).sum())
        if not abs(float(parts.sum()) - slope.wanted) <= allowed:
            wrong.append(
                f"{slope.parameter}.grad along a direction is {parts.sum():.6g}, "
                f"not {slope.wanted:.6g} ± {allowed:.3g}"
            )
    return wrong
