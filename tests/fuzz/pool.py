"""Pool: the values of a program under construction, and random choices among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from random import Random
from typing import Any, TypeVar

from fuzz.dtypes import INTS, UINTS, is_float
from fuzz.programs import Leaf, Shape
from fuzz.stochastic import Arithmetic, View

T = TypeVar("T")


class NotApplicable(Exception):
    """An operation has no valid inputs here; the generator tries another one."""


@dataclass
class Pool:
    """Named values as the reference computes them; `sizes` are the lengths of axes to use."""

    rng: Random
    sizes: tuple[int, ...]
    limit: int  # elements of a value, at most
    float_dtypes: tuple[str, ...] = ("float32",)
    int_dtypes: tuple[str, ...] = ("int32", "int32", "int64", "uint8", "int8", "uint32", "int16")
    has_gradients: bool = False
    values: dict[str, View] = field(default_factory=dict)
    leaves: list[Leaf] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    count: int = 0
    arithmetic: Arithmetic = field(default_factory=Arithmetic)

    def __getitem__(self, name: str) -> View:
        return self.values[name]

    # ------------------------------------------------------------------ choices

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def one_of(self, choices: Sequence[T]) -> T:
        return self.rng.choice(choices)

    def fits(self, shape: Shape) -> bool:
        return prod(shape) <= self.limit

    def pick(self, *conditions: Callable[[View], Any]) -> str:
        """A value, preferably a recent or unused one, so that programs become deep."""
        found = [n for n, one in self.values.items() if all(test(one) for test in conditions)]
        if not found:
            raise NotApplicable
        kind = self.rng.random()
        if kind < 0.35:
            return self.rng.choice(found[-3:])
        unused = [name for name in found if name not in self.used]
        return self.rng.choice(unused if unused and kind < 0.75 else found)

    def axis(self, name: str) -> int:
        ndim = len(self[name].shape)
        if not ndim:
            raise NotApplicable
        axis = self.rng.randrange(ndim)
        return axis - ndim if self.chance(0.3) else axis

    def size(self) -> int:
        return self.rng.choice(self.sizes)

    def shape(self) -> Shape:
        while True:
            found = tuple(self.size() for _ in range(self.rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4))))
            if self.fits(found):
                return found

    def float_dtype(self) -> str:
        return self.rng.choice(self.float_dtypes)

    def dtype(self) -> str:
        kind = self.rng.random()
        if self.has_gradients or kind < 0.7:
            return self.float_dtype()
        return self.rng.choice(self.int_dtypes) if kind < 0.93 else "bool"

    # ------------------------------------------------------------------ leaves

    def name(self) -> str:
        """a, b, … z, a1, b1, …"""
        letter, suffix = chr(ord("a") + self.count % 26), self.count // 26
        self.count += 1
        return f"{letter}{suffix or ''}"

    def leaf(self, shape: Shape, dtype: str, low: int | None = None, high: int = 9) -> str:
        """A new input: integers in [low, high) if `low` is given, else random fractions."""
        if not self.fits(shape):
            raise NotApplicable
        divisor = 1
        is_index = low is not None  # a global one that is written might be out of range next time
        if dtype == "bool":
            low, high = 0, 2
        elif low is None and is_float(dtype):
            low, high, divisor = self._fractions(dtype)
        elif low is None:
            low = 0 if dtype in UINTS else -8
        is_parameter = self.has_gradients and is_float(dtype) and self.chance(0.6)
        leaf = Leaf(
            self.name(), shape, dtype, low, high, divisor, self.rng.randrange(1000), is_parameter,
            not (is_parameter or is_index) and self.chance(0.15),
        )  # fmt: skip
        self.add_leaf(leaf)
        return leaf.name

    def _fractions(self, dtype: str) -> tuple[int, int, int]:
        if dtype.startswith("fp8") or (not self.has_gradients and self.chance(0.5)):
            return (-4, 5, 2) if dtype.startswith("fp8") else (-8, 9, 4)
        return -30000, 30001, 2**14

    def add_leaf(self, leaf: Leaf) -> None:
        from fuzz.reference import leaf_value

        self.leaves.append(leaf)
        self.values[leaf.name] = leaf_value(leaf, self.arithmetic)


# ---------------------------------------------------------------------- conditions


def floats(one: View) -> bool:
    return is_float(one.dtype)


def wide_floats(one: View) -> bool:
    """True for dtypes with digits to spare after a few roundings."""
    return one.dtype in ("float32", "float64")


def numbers(one: View) -> bool:
    return one.dtype != "bool"


def ints(one: View) -> bool:
    return one.dtype in INTS or one.dtype in UINTS


def exact(one: View) -> bool:
    return one.is_exact


def full(one: View) -> bool:
    """At least one axis, and at least one element."""
    return len(one.shape) > 0 and one.size > 0


def some(one: View) -> bool:
    return one.size > 0


def axes(min_count: int, max_count: int = 9) -> Callable[[View], bool]:
    return lambda one: min_count <= len(one.shape) <= max_count


def smaller(max_size: int) -> Callable[[View], bool]:
    return lambda one: one.size <= max_size
