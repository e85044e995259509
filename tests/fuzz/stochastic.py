"""Stochastic arithmetic: values with error estimates, computed several times with random errors.

Sample 0 is rounded as the dtype says. The other samples are perturbed before and after every
operation by a few ulp. The spread of the samples bounds the error of a correct implementation:
cancellation, steep functions and long sums need no rules of their own. Where numbers are exact in
every order of evaluation (small multiples of a power of two), nothing is perturbed, and results
must be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fuzz.dtypes import (
    EPSILON,
    MAX_RELATIVE_ERROR,
    MAX_VALUE,
    MIN_ERROR,
    is_float,
    numpy_dtype,
    reference_dtype,
    round_to,
)
from fuzz.programs import Array

GRID = 2.0**6  # exact inputs of sums are multiples of 1/GRID
NOISE_ULPS = 4.0  # size of the perturbations


class Discard(Exception):
    """The reference has no answer: the result is undefined or ill-conditioned."""


@dataclass(eq=False)
class Memory:
    """A flat array of a dtype, in every sample; `sources` are the parameters it depends on."""

    samples: Array
    dtype: str
    sources: frozenset[str] = frozenset()
    is_parameter: bool = False
    is_detached: bool = False  # a view without gradients exists


@dataclass(frozen=True, eq=False)
class View:
    """A view of a memory: indices of its elements, and the dtype that their bits are read as."""

    memory: Memory
    indices: Array
    dtype: str
    has_aliases: bool = False  # a view of an expanded value, whose elements alias
    is_detached: bool = False  # no gradient flows through this view

    @property
    def shape(self) -> tuple[int, ...]:
        return self.indices.shape

    @property
    def size(self) -> int:
        return self.indices.size

    @property
    def sources(self) -> frozenset[str]:
        """The parameters that a gradient flows to."""
        return frozenset() if self.is_detached else self.memory.sources

    @property
    def is_exact(self) -> bool:
        samples = self.memory.samples
        return (
            len(samples) == 1
            or not is_float(self.memory.dtype)
            or bool((samples == samples[0]).all())
        )

    @property
    def is_unique(self) -> bool:
        """True if no two elements of the view are the same."""
        return len(np.unique(self.indices)) == self.indices.size

    def read(self) -> Array:
        """The elements: (samples, *shape)"""
        found = self.memory.samples[:, self.indices]
        return (
            found
            if self.dtype == self.memory.dtype
            else bitcast(found, self.memory.dtype, self.dtype)
        )

    def write(self, values: Array) -> None:
        if self.dtype != self.memory.dtype:
            values = bitcast(
                np.broadcast_to(values, self._sample_shape()), self.dtype, self.memory.dtype
            )
        self.memory.samples[:, self.indices] = values

    def _sample_shape(self) -> tuple[int, ...]:
        return (len(self.memory.samples), *self.indices.shape)


def bitcast(x: Array, source: str, target: str) -> Array:
    """The same bits; both dtypes have the same size."""
    stored = np.ascontiguousarray(x.astype(numpy_dtype(source)))
    return stored.view(numpy_dtype(target)).reshape(x.shape).astype(reference_dtype(target))


def new_value(samples: Array, dtype: str, sources: frozenset[str] = frozenset()) -> View:
    """A view of all of a new memory."""
    count = samples.shape[0]
    flat = np.array(samples, reference_dtype(dtype)).reshape(count, -1)
    indices = np.arange(flat.shape[1]).reshape(samples.shape[1:])
    return View(Memory(flat, dtype, sources), indices, dtype)


@dataclass
class Arithmetic:
    """Evaluates operations: `samples` times with errors of `noise_ulps`, or in plain float64."""

    samples: int = 3
    is_rounded: bool = True
    noise_ulps: float = NOISE_ULPS
    seed: int = 0
    side: np.random.Generator | None = None  # of errors of one side of a central difference
    spread: float = 0.0  # size of these relative to the errors that both sides share
    rng: np.random.Generator = field(init=False)
    frozen: dict[str, Array] | None = None  # detached values for the unperturbed parameters

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    # ------------------------------------------------------------------ one operation

    def compute(
        self,
        function: Callable[..., Any],
        inputs: Sequence[View],
        dtypes: tuple[str, ...],
        exactness: str,
        floor: float = 0.0,
    ) -> list[Array]:
        """The results of an operation in every sample; dtypes are those of the results."""
        arrays = [one.read() for one in inputs]
        with np.errstate(all="ignore"):
            first = _outputs(function, [array[0] for array in arrays])
            if self.is_rounded:
                first = [self._round(x, dtype) for x, dtype in zip(first, dtypes, strict=True)]
            is_exact = all(one.is_exact for one in inputs)
            if not is_exact and not all(map(is_float, dtypes)) and any(map(_is_coarse, inputs)):
                raise Discard("a comparison depends on the rounding of narrow floats")
            is_deterministic = is_exact and _stays_exact(function, arrays, first, dtypes, exactness)
            found = [np.empty((self.samples, *x.shape), x.dtype) for x in first]
            for sample in range(self.samples):
                outs = first
                if (sample or not self.is_rounded) and not is_deterministic:
                    outs = self._perturbed(
                        function, inputs, arrays, dtypes, exactness, floor, sample
                    )
                for out, x in zip(found, outs, strict=True):
                    out[sample] = x
        for out, dtype in zip(found, dtypes, strict=True):
            check_well_conditioned(out, dtype)
        return found

    def _perturbed(
        self,
        function: Callable[..., Any],
        inputs: Sequence[View],
        arrays: list[Array],
        dtypes: tuple[str, ...],
        exactness: str,
        floor: float,
        sample: int,
    ) -> list[Array]:
        is_perturbed = exactness != "move" and self.noise_ulps > 0
        given = [array[sample] for array in arrays]
        if is_perturbed:
            names = [one.dtype for one in inputs]
            if exactness == "exact":  # other functions may also round intermediate results
                names = [_compute_dtype(name) for name in names]
            given = [self._noise(x, name) for x, name in zip(given, names, strict=True)]
        outs = _outputs(function, given)
        if not is_perturbed:
            return outs
        largest = max(x.size for x in given)
        return [
            self._noise(x, n, floor, _growth(largest, x.size))
            for x, n in zip(outs, dtypes, strict=True)
        ]

    def _round(self, x: Array, dtype: str) -> Array:
        return round_to(x, dtype) if is_float(dtype) else x

    def _noise(self, x: Array, dtype: str, floor: float = 0.0, growth: float = 1.0) -> Array:
        if not is_float(dtype):
            return x
        ulps = self.noise_ulps if dtype in ("float32", "float64") else self.noise_ulps / NOISE_ULPS
        sizes = _signed(self.rng, x.shape)
        if self.side is not None:
            sizes *= 1 + self.spread * _signed(self.side, x.shape)
        intermediate = EPSILON[_compute_dtype(dtype)] * floor
        summed = EPSILON[_compute_dtype(dtype)] * np.abs(x)
        unit = EPSILON[dtype] * np.abs(x) + intermediate + (growth - 1) * summed
        return x + ulps * sizes * unit


def _signed(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Random numbers in [0.5, 1] with random signs."""
    found = np.asarray(rng.random(shape) - 0.5)
    return found + np.copysign(0.5, found)


def _growth(inputs: int, outputs: int) -> float:
    """Errors of a sequential sum grow with the root of its length, if it is not short."""
    return max(1.0, (inputs / max(1, outputs)) ** 0.5 / 4)


def _is_coarse(one: View) -> bool:
    """True for rounded narrow floats: they are often equal, so rounding decides comparisons."""
    return is_float(one.dtype) and one.dtype not in ("float32", "float64") and not one.is_exact


def _compute_dtype(dtype: str) -> str:
    """The dtype of the computation: float32 for narrow floats."""
    return dtype if dtype == "float64" or not is_float(dtype) else "float32"


def _outputs(function: Callable[..., Any], arrays: list[Array]) -> list[Array]:
    try:
        found = function(*arrays)
    except (IndexError, ValueError, ZeroDivisionError) as error:
        raise Discard(f"NumPy raised: {error}") from error
    return [np.asarray(x) for x in (found if isinstance(found, (tuple, list)) else [found])]


def _stays_exact(
    function: Callable[..., Any],
    arrays: list[Array],
    outs: list[Array],
    dtypes: tuple[str, ...],
    exactness: str,
) -> bool:
    """True if every order of evaluation gives the same bits."""
    if exactness == "move" or not any(is_float(dtype) for dtype in dtypes):
        return True
    if exactness == "function":
        return False
    values = [array[0] for array in arrays if array.dtype == np.float64]
    if any((x * GRID != np.trunc(x * GRID)).any() for x in values):
        return False
    wanted = _outputs(function, [array[0] for array in arrays])
    if any((x != y).any() for x, y in zip(outs, wanted, strict=True)):
        return False
    sizes = _outputs(function, [np.abs(a[0]) if a.dtype == np.float64 else a[0] for a in arrays])
    most = max((float(np.abs(x).max(initial=0.0)) for x in sizes), default=0.0)
    return most < 2.0**24 / GRID**2


def check_well_conditioned(samples: Array, dtype: str) -> None:
    """Discard values that are not finite, too large, or differ too much between samples."""
    if not is_float(dtype):
        if (samples != samples[0]).any():
            raise Discard("a discrete result depends on rounding")
        return
    first = np.abs(samples[0])
    if not (first.max(initial=0.0) <= MAX_VALUE[dtype]):
        raise Discard("a value is too large or undefined")
    if len(samples) > 1:
        spread = np.abs(samples - samples[0]).max(0)
        if not (
            spread
            <= MAX_RELATIVE_ERROR[dtype]
            * (first + first.sum() / max(1, first.size) + MIN_ERROR[dtype])
        ).all():
            raise Discard("a value is ill-conditioned")


def tolerance(samples: Array, dtype: str) -> Array:
    """The allowed error of each element."""
    spread = np.abs(samples - samples[0]).max(0)
    if not spread.any():
        return spread
    # A sequential sum of a thousand equal terms may be wrong by tens of ulp.
    ulps = 64.0 if dtype in ("float32", "float64") else 1.01
    rounding = ulps * EPSILON[dtype] * np.abs(samples[0]) + MIN_ERROR[dtype]
    return 16 * spread + 4 * spread.mean() + rounding
