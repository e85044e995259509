"""Program -> results in plain Python: slow, obvious, the reference for all other devices.

With a GPU's Target it runs a grid of threads, which tests GPU programs without a GPU:
`PythonDevice("PYTHON", gpu_facts)`.
"""

from __future__ import annotations

from collections.abc import Sequence

from glassgrad.base.dtype import dtypes
from glassgrad.base.fast_dataclasses import replace, unique
from glassgrad.devices.protocol import Call, PythonBatch
from glassgrad.devices.python.interpreter import ProgramRun
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Source, Target
from glassgrad.memory.allocator import Allocator, allocator_for

FUNCTIONS = frozenset((Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.POW, Ops.THREEFRY))


def python_target() -> Target:
    """A small machine with short vectors: programs are short and use every kind of uop."""
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
    """A program that is interpreted uop by uop."""

    source: Source
    address: int = 0

    def __call__(self, pointers: tuple[int, ...], values: tuple[int, ...] = ()) -> None:
        ProgramRun(self.source.program, pointers, values).run()


class PythonDevice:
    """This Python interpreter, as a machine described by a Target."""

    def __init__(self, name: str = "PYTHON", facts: Target | None = None) -> None:
        self.name = name
        self.target = python_target() if facts is None else replace(facts, language="python")
        self.allocator: Allocator = allocator_for(name)

    def compile(self, source: Source) -> Interpreted:
        return Interpreted(source)

    def prepare(self, calls: Sequence[Call]) -> PythonBatch:
        return PythonBatch(calls)

    def run(self, calls: Sequence[Call]) -> None:
        PythonBatch(calls).run()

    def synchronize(self) -> None:
        """Nothing to do: calls return when their work is done."""
