"""Program -> results in plain Python: slow, obvious, the reference for all other devices.

With the Target of a GPU it runs programs for a grid of threads, so these are tested for real where
no GPU is: `PythonDevice("PYTHON", gpu_facts)`.
"""

from __future__ import annotations

from collections.abc import Sequence

from glassgrad.base.dtype import dtypes
from glassgrad.base.fast_dataclasses import replace, unique
from glassgrad.devices.protocol import Call, OneByOne
from glassgrad.devices.python.interpreter import Run
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Source, Target
from glassgrad.memory.allocator import Allocator, allocator_for

FUNCTIONS = frozenset((Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.POW, Ops.THREEFRY))


def python_target() -> Target:
    """A small machine with short vectors: programs stay short, and every kind of uop occurs."""
    return Target(
        name="PYTHON",
        language="python",
        vector_bytes=16,
        registers=8,
        native=FUNCTIONS,
        dtypes=frozenset(dtypes.all),
    )


@unique
class Interpreted:
    """A program that is carried out uop by uop."""

    source: Source
    address: int = 0

    def __call__(self, pointers: tuple[int, ...], values: tuple[int, ...] = ()) -> None:
        Run(self.source.program, pointers, values).run()


class PythonDevice:
    """This Python, as if it were a machine with the facts of a Target."""

    def __init__(self, name: str = "PYTHON", facts: Target | None = None) -> None:
        self.name = name
        self.target = python_target() if facts is None else replace(facts, language="python")
        self.allocator: Allocator = allocator_for(name)

    def compile(self, source: Source) -> Interpreted:
        return Interpreted(source)

    def prepare(self, calls: Sequence[Call]) -> OneByOne:
        return OneByOne(calls)

    def run(self, calls: Sequence[Call]) -> None:
        OneByOne(calls).run()

    def synchronize(self) -> None:
        """Calls return when their work is done."""
