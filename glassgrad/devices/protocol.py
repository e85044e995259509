"""What every device offers: compile a Source, run calls of Executables, and wait for them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Protocol

from glassgrad.base.fast_dataclasses import frozen
from glassgrad.ir.stages import Executable, Source, Target


@frozen
class Call:
    """An executable, the addresses of its buffers, and the values of its variables by name."""

    executable: Executable
    pointers: tuple[int, ...]
    values: tuple[int, ...] = ()


class Batch(Protocol):
    """Prepared calls that run in order, any number of times; arguments can be replaced."""

    def run(self) -> None: ...

    def set_pointer(self, call: int, slot: int, address: int) -> None: ...

    def set_value(self, call: int, number: int, value: int) -> None: ...

    def set_words(self, words: Sequence[int]) -> None:
        """Set all pointers and values: those of the first call, then those of the next."""
        ...


class Device(Protocol):
    """A machine that compiles Sources in its target's language."""

    @property
    def name(self) -> str: ...

    @property
    def target(self) -> Target: ...

    def compile(self, source: Source) -> Executable: ...

    def prepare(self, calls: Sequence[Call]) -> Batch:
        """Prepare calls to run in order, with as little work as possible at each run."""
        ...

    def run(self, calls: Sequence[Call]) -> None:
        """Run calls in order, once."""
        ...

    def synchronize(self) -> None:
        """Wait until all started work is done."""
        ...


class PythonBatch:
    """A batch for devices without a native one: calls each executable from Python."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self.executables = [call.executable for call in calls]
        self.pointers = [list(call.pointers) for call in calls]
        self.values = [list(call.values) for call in calls]

    def run(self) -> None:
        for execute, pointers, values in zip(
            self.executables, self.pointers, self.values, strict=True
        ):
            execute(tuple(pointers), tuple(values))

    def set_pointer(self, call: int, slot: int, address: int) -> None:
        self.pointers[call][slot] = address

    def set_value(self, call: int, number: int, value: int) -> None:
        self.values[call][number] = value

    def set_words(self, words: Sequence[int]) -> None:
        rest = iter(words)
        for parts in zip(self.pointers, self.values, strict=True):
            for part in parts:
                part[:] = islice(rest, len(part))
