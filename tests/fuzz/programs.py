"""Program: leaves and statements as data, and the Python text that runs them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
NARROW = ("bfloat16", "fp8e4m3", "fp8e5m2")


@dataclass(frozen=True)
class Leaf:
    """An input of random numbers: integers of [low, high) divided by a power of two.

    Such numbers are exact in every dtype that has enough bits. Fine fractions are odd multiples of
    the smallest one, which avoids 0, 1 and other points where functions have kinks.
    """

    name: str
    shape: Shape
    dtype: str = "float32"
    low: int = -8
    high: int = 9
    divisor: int = 4
    seed: int = 0
    is_parameter: bool = False
    is_global: bool = False  # a global of the function instead of an argument

    def numbers(self, seed: int | None = None) -> Array:
        chosen = self.seed if seed is None else seed
        return _numbers(self.shape, self.low, self.high, self.divisor, self.is_fine, chosen)

    @property
    def is_fine(self) -> bool:
        return self.divisor > 4

    def text(self, more: str = "") -> str:
        """An expression of the tensor; `more` is added to the seed."""
        low, high, shape = self.low, self.high, self.shape
        numbers = f"np.random.default_rng({self.seed}{more}).integers({low}, {high}, {shape})"
        if self.is_fine:
            numbers = f"({numbers} + 0.5)"
        if self.divisor != 1:
            numbers = f"({numbers} / {self.divisor})"
        first = "float32" if self.dtype in NARROW else self.dtype
        array = f'Tensor({numbers}.astype("{first}"))'
        cast = f'.cast("{self.dtype}")' if self.dtype in NARROW else ""
        parameter = ".requires_grad_()" if self.is_parameter else ""
        return f"{array}{cast}.realize(){parameter}"


@lru_cache(maxsize=256)
def _numbers(shape: Shape, low: int, high: int, divisor: int, is_fine: bool, seed: int) -> Array:
    whole = np.random.default_rng(seed).integers(low, high, shape)
    found = np.asarray((whole + 0.5 if is_fine else whole) / divisor)
    found.flags.writeable = False
    return found


@dataclass(frozen=True)
class Statement:
    """One operation: its name in the table, outputs, inputs and constants."""

    op: str
    outs: tuple[str, ...]
    inputs: tuple[str, ...]
    args: dict[str, Any] = field(default_factory=dict)

    def names(self) -> tuple[str, ...]:
        return (*self.outs, *self.inputs)


@dataclass(frozen=True)
class Program:
    """Leaves, statements, and the values to compare at the end.

    With a `loss`, the gradients of the parameters are compared, too.
    """

    leaves: tuple[Leaf, ...]
    statements: tuple[Statement, ...]
    outputs: tuple[str, ...]
    loss: tuple[str, ...] = ()
    realizes_together: bool = True  # all outputs are realized by one call
    keeps_unused: bool = False  # do not prune: it fails only while unused values are alive

    @property
    def parameters(self) -> tuple[Leaf, ...]:
        return tuple(leaf for leaf in self.leaves if leaf.is_parameter) if self.loss else ()

    def with_seeds(self, offset: int) -> Program:
        """The program with other inputs and the same global leaves."""
        leaves = [
            leaf if leaf.is_global or not offset else replace(leaf, seed=leaf.seed + 1000 * offset)
            for leaf in self.leaves
        ]
        return replace(self, leaves=tuple(leaves))

    def without_unused(self) -> Program:
        """Without unused leaves."""
        used = {name for one in self.statements for name in one.inputs}
        used.update(self.outputs, self.loss)
        return replace(self, leaves=tuple(leaf for leaf in self.leaves if leaf.name in used))

    def lines(self) -> Iterator[str]:
        """The statements as Python, without leaves and results."""
        from fuzz.ops import OPS

        for one in self.statements:
            yield OPS[one.op].text_of(one)
        if self.loss:
            for leaf in self.parameters:
                yield f"{leaf.name}.grad = None"
            yield f"loss = {' + '.join(loss_term(name) for name in self.loss)}"
            yield "loss.backward()"

    def results(self) -> list[str]:
        """The expressions to compare."""
        return [*self.outputs, *(f"{leaf.name}.grad" for leaf in self.parameters)]

    def function(self) -> str:
        """The text of a function of all leaves that are not global."""
        names = ", ".join(leaf.name for leaf in self.leaves if not leaf.is_global)
        found = [f"found = [{', '.join(self.results())}]"]
        if self.realizes_together:
            found.append("Tensor.realize(*[one for one in found if one is not None])")
        global_names = [leaf.name for leaf in self.leaves if leaf.is_global]
        first = [f"global {', '.join(global_names)}"] if global_names else []
        body = indent([*first, *self.lines(), *found, "return found"])
        return "\n".join([f"def program({names}):", *body])

    def script(self, seeds: Sequence[int] = (0,), is_captured: bool = False) -> str:
        """A stand-alone script that calls the program with inputs of these seeds."""
        lines = ["import numpy as np", "from glassgrad import Tensor, TinyJit, nn", ""]
        lines += [f"{leaf.name} = {leaf.text()}" for leaf in self.leaves if leaf.is_global]
        lines += [self.function(), *(["program = TinyJit(program)"] if is_captured else [])]
        lines += [f"for offset in {tuple(1000 * seed for seed in seeds)}:", "    inputs = ["]
        lines += [
            f"        {leaf.text(' + offset')}," for leaf in self.leaves if not leaf.is_global
        ]
        lines += ["    ]", "    print([one.numpy() for one in program(*inputs)])"]
        return "\n".join(lines)


def loss_term(name: str) -> str:
    """A loss whose derivative differs between elements."""
    return f"({name}.float() * ({name}.float() + 0.5)).mean()"


def indent(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]
