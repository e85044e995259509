"""Values with error estimates: each is computed several times, with random rounding errors.

Lane 0 is rounded as the dtype says. The other lanes are disturbed before and after every operation
by a few units in the last place. How far lanes are apart is how far a correct implementation may be
off: cancellation, steep functions and long sums need no rules of their own. Where the numbers are
exact in every order of computing (small fractions of a power of two), nothing is disturbed, and
results must be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fuzz.dtypes import (
    EPSILON,
    LARGEST,
    LOOSEST,
    TINIEST,
    is_float,
    kept_as,
    numpy_dtype,
    rounded,
)
from fuzz.programs import Array

GRID = 2.0**6  # exact inputs of sums are multiples of 1/GRID
UNITS = 4.0  # a lane is disturbed by this many units in the last place


class Discard(Exception):
    """The reference cannot say what is right: the result is undefined or ill-conditioned."""


@dataclass(eq=False)
class Memory:
    """One flat array of a dtype, in every lane; `sources` are the parameters it depends on."""

    lanes: Array
    dtype: str
    sources: frozenset[str] = frozenset()
    is_parameter: bool = False
    is_detached: bool = False  # a view without gradients exists


@dataclass(frozen=True, eq=False)
class Shown:
    """What a tensor shows: elements of a memory, perhaps with their bits read as another dtype."""

    memory: Memory
    at: Array
    dtype: str
    is_repeated: bool = False  # a view of something that shows elements more than once
    is_detached: bool = False  # no gradient flows through this view

    @property
    def shape(self) -> tuple[int, ...]:
        return self.at.shape

    @property
    def size(self) -> int:
        return self.at.size

    @property
    def sources(self) -> frozenset[str]:
        """The parameters that a gradient flows to."""
        return frozenset() if self.is_detached else self.memory.sources

    @property
    def is_exact(self) -> bool:
        lanes = self.memory.lanes
        return len(lanes) == 1 or not is_float(self.memory.dtype) or bool((lanes == lanes[0]).all())

    @property
    def is_unique(self) -> bool:
        """Is every element shown only once?"""
        return len(np.unique(self.at)) == self.at.size

    def read(self) -> Array:
        """(lanes, *shape)"""
        found = self.memory.lanes[:, self.at]
        return (
            found
            if self.dtype == self.memory.dtype
            else bitcast(found, self.memory.dtype, self.dtype)
        )

    def write(self, values: Array) -> None:
        if self.dtype != self.memory.dtype:
            values = bitcast(
                np.broadcast_to(values, self._lane_shape()), self.dtype, self.memory.dtype
            )
        self.memory.lanes[:, self.at] = values

    def _lane_shape(self) -> tuple[int, ...]:
        return (len(self.memory.lanes), *self.at.shape)


def bitcast(x: Array, source: str, target: str) -> Array:
    """The same bits; both dtypes have the same size."""
    held = np.ascontiguousarray(x.astype(numpy_dtype(source)))
    return held.view(numpy_dtype(target)).reshape(x.shape).astype(kept_as(target))


def shown(lanes: Array, dtype: str, sources: frozenset[str] = frozenset()) -> Shown:
    """A value of its own."""
    count = lanes.shape[0]
    flat = np.array(lanes, kept_as(dtype)).reshape(count, -1)
    at = np.arange(flat.shape[1]).reshape(lanes.shape[1:])
    return Shown(Memory(flat, dtype, sources), at, dtype)


@dataclass
class Arithmetic:
    """How operations round: `lanes` times, with errors of `units`; or not at all, in float64."""

    lanes: int = 3
    is_rounded: bool = True
    units: float = UNITS
    seed: int = 0
    side: np.random.Generator | None = None  # of errors that another evaluation does not share
    spread: float = 0.0  # how large these are beside those that it shares
    rng: np.random.Generator = field(init=False)
    frozen: dict[str, Array] | None = None  # what detached values were when nothing was moved

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    # ------------------------------------------------------------------ one operation

    def compute(
        self,
        function: Callable[..., Any],
        inputs: Sequence[Shown],
        dtypes: tuple[str, ...],
        exactness: str,
        floor: float = 0.0,
    ) -> list[Array]:
        """The results of one operation in every lane; dtypes are those of the results."""
        arrays = [one.read() for one in inputs]
        with np.errstate(all="ignore"):
            first = _outputs(function, [array[0] for array in arrays])
            if self.is_rounded:
                first = [self._round(x, dtype) for x, dtype in zip(first, dtypes, strict=True)]
            is_exact = all(one.is_exact for one in inputs)
            if not is_exact and not all(map(is_float, dtypes)) and any(map(_is_coarse, inputs)):
                raise Discard("a decision depends on narrow floats that were rounded")
            is_same = is_exact and _stays_exact(function, arrays, first, dtypes, exactness)
            found = [np.empty((self.lanes, *x.shape), x.dtype) for x in first]
            for lane in range(self.lanes):
                outs = first
                if (lane or not self.is_rounded) and not is_same:
                    outs = self._disturbed(function, inputs, arrays, dtypes, exactness, floor, lane)
                for out, x in zip(found, outs, strict=True):
                    out[lane] = x
        for out, dtype in zip(found, dtypes, strict=True):
            check_tame(out, dtype)
        return found

    def _disturbed(
        self,
        function: Callable[..., Any],
        inputs: Sequence[Shown],
        arrays: list[Array],
        dtypes: tuple[str, ...],
        exactness: str,
        floor: float,
        lane: int,
    ) -> list[Array]:
        is_noisy = exactness != "move" and self.units > 0
        given = [array[lane] for array in arrays]
        if is_noisy:
            names = [one.dtype for one in inputs]
            if exactness == "exact":  # one operation; others may round on the way
                names = [_inside(name) for name in names]
            given = [self._noise(x, name) for x, name in zip(given, names, strict=True)]
        outs = _outputs(function, given)
        if not is_noisy:
            return outs
        largest = max(x.size for x in given)
        return [
            self._noise(x, n, floor, _growth(largest, x.size))
            for x, n in zip(outs, dtypes, strict=True)
        ]

    def _round(self, x: Array, dtype: str) -> Array:
        return rounded(x, dtype) if is_float(dtype) else x

    def _noise(self, x: Array, dtype: str, floor: float = 0.0, growth: float = 1.0) -> Array:
        if not is_float(dtype):
            return x
        units = self.units if dtype in ("float32", "float64") else self.units / UNITS
        sizes = _signed(self.rng, x.shape)
        if self.side is not None:
            sizes *= 1 + self.spread * _signed(self.side, x.shape)
        inside = EPSILON[_inside(dtype)] * floor
        summed = EPSILON[_inside(dtype)] * np.abs(x)
        return x + units * sizes * (EPSILON[dtype] * np.abs(x) + inside + (growth - 1) * summed)


def _signed(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Numbers of either sign between a half and 1."""
    found = np.asarray(rng.random(shape) - 0.5)
    return found + np.copysign(0.5, found)


def _growth(read: int, made: int) -> float:
    """Errors of a sum in plain order grow as the root of its length; short ones have none."""
    return max(1.0, (read / max(1, made)) ** 0.5 / 4)


def _is_coarse(one: Shown) -> bool:
    """So few digits that equal numbers are common, and then rounding decides."""
    return is_float(one.dtype) and one.dtype not in ("float32", "float64") and not one.is_exact


def _inside(dtype: str) -> str:
    """Narrow floats are computed in float32."""
    return dtype if dtype == "float64" or not is_float(dtype) else "float32"


def _outputs(function: Callable[..., Any], arrays: list[Array]) -> list[Array]:
    try:
        found = function(*arrays)
    except (IndexError, ValueError, ZeroDivisionError) as error:
        raise Discard(f"NumPy refuses: {error}") from error
    return [np.asarray(x) for x in (found if isinstance(found, (tuple, list)) else [found])]


def _stays_exact(
    function: Callable[..., Any],
    arrays: list[Array],
    outs: list[Array],
    dtypes: tuple[str, ...],
    exactness: str,
) -> bool:
    """Does every way to compute these results give the same bits?"""
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


def check_tame(lanes: Array, dtype: str) -> None:
    """Refuse what is not finite, too large, or too far apart between lanes."""
    if not is_float(dtype):
        if (lanes != lanes[0]).any():
            raise Discard("a decision depends on rounding")
        return
    first = np.abs(lanes[0])
    if not (first.max(initial=0.0) <= LARGEST[dtype]):
        raise Discard("a value is too large or undefined")
    if len(lanes) > 1:
        apart = np.abs(lanes - lanes[0]).max(0)
        if not (
            apart <= LOOSEST[dtype] * (first + first.sum() / max(1, first.size) + TINIEST[dtype])
        ).all():
            raise Discard("a value is ill-conditioned")


def tolerance(lanes: Array, dtype: str) -> Array:
    """How far off each element may be."""
    apart = np.abs(lanes - lanes[0]).max(0)
    if not apart.any():
        return apart
    # A sequential sum of a thousand equal terms may be off by tens of units.
    units = 64.0 if dtype in ("float32", "float64") else 1.01
    own = units * EPSILON[dtype] * np.abs(lanes[0]) + TINIEST[dtype]
    return 16 * apart + 4 * apart.mean() + own
