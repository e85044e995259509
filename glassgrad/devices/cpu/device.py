"""Source -> machine code on this CPU: compiled by LLVM in process, run on a native thread pool."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from time import perf_counter

from glassgrad.base.events import LISTENERS, KernelCompiled, announce
from glassgrad.base.fast_dataclasses import replace, unique
from glassgrad.devices.cpu.break_even import core_work_ns
from glassgrad.devices.cpu.machine import cpu_target
from glassgrad.devices.cpu.native import LinkedCode, assembly, host, load_text
from glassgrad.devices.cpu.pool import Pool, Table
from glassgrad.devices.protocol import Call
from glassgrad.ir.stages import Source, Target
from glassgrad.memory.allocator import Allocator, allocator_for


@unique
class NativeCode:
    """A compiled kernel. Its code stays loaded as long as this object lives."""

    source: Source
    address: int
    linked: LinkedCode
    pool: Pool

    def __call__(self, pointers: tuple[int, ...], values: tuple[int, ...] = ()) -> None:
        Table(self.pool, (Call(self, pointers, values),)).run()

    def assembly(self) -> str:
        """The machine code as assembly text."""
        return assembly(self.source.text)


class CpuDevice:
    """This machine's processor."""

    def __init__(self, name: str = "CPU") -> None:
        self.name = name
        self.facts = cpu_target(host())
        self.pool = Pool(self.facts.cores)
        self.allocator: Allocator = allocator_for(name)

    @cached_property
    def target(self) -> Target:
        """The facts and the measured `core_work_ns`, which only compilation needs."""
        return replace(self.facts, core_work_ns=core_work_ns(self.pool))

    def compile(self, source: Source) -> NativeCode:
        start = perf_counter()
        linked = load_text(source.text, (source.name,))
        if LISTENERS:
            seconds = perf_counter() - start
            announce(
                KernelCompiled(source.name, self.name, source, seconds, cached=linked.was_cached)
            )
        return NativeCode(source, linked.address(source.name), linked, self.pool)

    def prepare(self, calls: Sequence[Call]) -> Table:
        return Table(self.pool, calls)

    def run(self, calls: Sequence[Call]) -> None:
        Table(self.pool, calls).run()

    def synchronize(self) -> None:
        """Nothing to do: calls return when their work is done."""
