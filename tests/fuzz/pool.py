"""The values that a growing program has so far, and random choices among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from random import Random
from typing import Any, TypeVar

from fuzz.dtypes import INTS, UINTS, is_float
from fuzz.programs import Leaf, Shape
from fuzz.stochastic import Arithmetic, Shown

T = TypeVar("T")


class Refused(Exception):
    """This step cannot be taken here; another one is tried."""


@dataclass
class Pool:
    """Named values with what the reference says they are; `sizes` are the lengths of axes."""

    rng: Random
    sizes: tuple[int, ...]
    limit: int  # no value has more elements
    floats: tuple[str, ...] = ("float32",)
    wholes: tuple[str, ...] = ("int32", "int32", "int64", "uint8", "int8", "uint32", "int16")
    has_gradients: bool = False
    shown: dict[str, Shown] = field(default_factory=dict)
    leaves: list[Leaf] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    count: int = 0
    arithmetic: Arithmetic = field(default_factory=Arithmetic)

    def __getitem__(self, name: str) -> Shown:
        return self.shown[name]

    # ------------------------------------------------------------------ choices

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def one_of(self, choices: Sequence[T]) -> T:
        return self.rng.choice(choices)

    def fits(self, shape: Shape) -> bool:
        return prod(shape) <= self.limit

    def pick(self, *conditions: Callable[[Shown], Any]) -> str:
        """A value, more often a late or an unused one: programs grow deep."""
        found = [n for n, one in self.shown.items() if all(test(one) for test in conditions)]
        if not found:
            raise Refused
        kind = self.rng.random()
        if kind < 0.35:
            return self.rng.choice(found[-3:])
        fresh = [name for name in found if name not in self.used]
        return self.rng.choice(fresh if fresh and kind < 0.75 else found)

    def axis(self, name: str) -> int:
        ndim = len(self[name].shape)
        if not ndim:
            raise Refused
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
        return self.rng.choice(self.floats)

    def dtype(self) -> str:
        kind = self.rng.random()
        if self.has_gradients or kind < 0.7:
            return self.float_dtype()
        return self.rng.choice(self.wholes) if kind < 0.93 else "bool"

    # ------------------------------------------------------------------ leaves

    def name(self) -> str:
        """a, b, … z, a1, b1, …"""
        letter, turn = chr(ord("a") + self.count % 26), self.count // 26
        self.count += 1
        return f"{letter}{turn or ''}"

    def leaf(self, shape: Shape, dtype: str, low: int | None = None, high: int = 9) -> str:
        """A new input: of quarters or of any numbers; integers in [low, high) if low is given."""
        if not self.fits(shape):
            raise Refused
        divisor = 1
        if dtype == "bool":
            low, high = 0, 2
        elif low is None and is_float(dtype):
            low, high, divisor = self._fractions(dtype)
        elif low is None:
            low = 0 if dtype in UINTS else -8
        is_parameter = self.has_gradients and is_float(dtype) and self.chance(0.6)
        leaf = Leaf(
            self.name(), shape, dtype, low, high, divisor, self.rng.randrange(1000), is_parameter,
            not is_parameter and self.chance(0.15),
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
        self.shown[leaf.name] = leaf_value(leaf, self.arithmetic)


# ---------------------------------------------------------------------- conditions


def floats(one: Shown) -> bool:
    return is_float(one.dtype)


def wide_floats(one: Shown) -> bool:
    """Where a few operations do not use up all digits."""
    return one.dtype in ("float32", "float64")


def numbers(one: Shown) -> bool:
    return one.dtype != "bool"


def whole(one: Shown) -> bool:
    return one.dtype in INTS or one.dtype in UINTS


def exact(one: Shown) -> bool:
    return one.is_exact


def full(one: Shown) -> bool:
    """At least one axis, and at least one element."""
    return len(one.shape) > 0 and one.size > 0


def some(one: Shown) -> bool:
    return one.size > 0


def axes(least: int, most: int = 9) -> Callable[[Shown], bool]:
    return lambda one: least <= len(one.shape) <= most


def smaller(most: int) -> Callable[[Shown], bool]:
    return lambda one: one.size <= most
