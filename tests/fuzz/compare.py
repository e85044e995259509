"""Comparison of results with the reference, and messages for differences."""

from __future__ import annotations

import numpy as np

from fuzz.dtypes import is_float, numpy_dtype
from fuzz.programs import Array, Program
from fuzz.reference import DirectionalDerivative, State
from fuzz.stochastic import View, tolerance


def difference(name: str, found: Array, expected: View) -> str | None:
    """A message about one wrong value, or None."""
    dtype = expected.dtype
    if found.shape != expected.shape:
        return f"{name} has shape {found.shape}, not {expected.shape}"
    if found.dtype != numpy_dtype(dtype):
        return f"{name} is {found.dtype}, not {dtype}"
    samples = expected.read()
    if not is_float(dtype):
        wrong = found != samples[0]
        allowed = np.zeros(wrong.shape)
    else:
        allowed = tolerance(samples, dtype)
        with np.errstate(invalid="ignore"):
            wrong = ~(np.abs(found.astype(np.float64) - samples[0]) <= allowed)
    if not wrong.any():
        return None
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    where = f"{name}[{', '.join(map(str, first))}]" if first else name
    slack = f" ± {allowed[first]:.3g}" if is_float(dtype) else ""
    count = f"{int(wrong.sum())} of {wrong.size} wrong"
    return f"{where} is {found[first]!s}, not {samples[0][first]!s}{slack} ({count})"


def value_differences(program: Program, found: list[Array | None], state: State) -> list[str]:
    wrong = []
    for name, array in zip(program.outputs, found, strict=False):
        message = "is None" if array is None else difference(name, array, state[name])
        if message:
            wrong.append(message)
    return wrong


def gradient_differences(
    program: Program, found: list[Array | None], derivatives: list[DirectionalDerivative]
) -> list[str]:
    """Compare each gradient along the direction of the finite difference."""
    wrong = []
    gradients = found[len(program.outputs) :]
    for derivative, gradient in zip(derivatives, gradients, strict=True):
        parts = np.zeros(1)
        if gradient is not None:
            if gradient.shape != derivative.direction.shape:
                wrong.append(f"{derivative.parameter}.grad has shape {gradient.shape}")
                continue
            parts = gradient.astype(np.float64) * derivative.direction
        allowed = derivative.error + 1e-4 * float(np.abs(parts).sum())
        if not abs(float(parts.sum()) - derivative.expected) <= allowed:
            wrong.append(
                f"{derivative.parameter}.grad along a direction is {parts.sum():.6g}, "
                f"not {derivative.expected:.6g} ± {allowed:.3g}"
            )
    return wrong
