"""A CPU device that accepts every source and runs none; memory stays as it was allocated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import process_time
from typing import NamedTuple

from glassgrad.base.config import Context
from glassgrad.base.dtype import dtypes
from glassgrad.devices.protocol import Call
from glassgrad.devices.registry import Device
from glassgrad.engine.cache import graph_keys as cache
from glassgrad.ir.stages import Source, Target

NATIVE = frozenset(dtypes.all) - {dtypes.bfloat16, *dtypes.fp8s}
AVX2 = Target("CPU", "llvm", vector_bytes=32, registers=16, cores=8, dtypes=NATIVE)
AVX512 = Target(
    "CPU", "llvm", vector_bytes=64, registers=32, l2_bytes=1 << 20, cores=2, dtypes=NATIVE
)
CUDA = Target(
    "CPU", "cuda", has_vector_alu=False, has_threads=True, group_size=256, shared_bytes=48 << 10,
    dtypes=NATIVE,
)  # fmt: skip
TARGETS = {"avx2": AVX2, "avx512": AVX512, "cuda": CUDA}


class UncompiledKernel(NamedTuple):
    """Takes the place of a compiled kernel."""

    source: Source
    address: int = 0

    def __call__(self, pointers: tuple[int, ...], values: tuple[int, ...] = ()) -> None:
        """Do nothing."""


class EmptyBatch:
    """A batch of launches that does nothing."""

    def run(self) -> None: ...

    def set_pointer(self, call: int, slot: int, address: int) -> None: ...

    def set_value(self, call: int, number: int, value: int) -> None: ...

    def set_words(self, words: Sequence[int]) -> None: ...


class DryDevice:
    """Takes the place of the CPU; `sources` are the kernels that would have been compiled."""

    def __init__(self, target: Target) -> None:
        self.name = "CPU"
        self.target = target
        self.sources: list[Source] = []
        self.seconds: list[float] = []  # between two sources: about the time to write each
        self.last = process_time()

    def compile(self, source: Source) -> UncompiledKernel:
        now = process_time()
        self.sources.append(source)
        self.seconds.append(now - self.last)
        self.last = now
        return UncompiledKernel(source)

    def prepare(self, calls: Sequence[Call]) -> EmptyBatch:
        return EmptyBatch()

    def run(self, calls: Sequence[Call]) -> None:
        self.last = process_time()

    def synchronize(self) -> None: ...


@contextmanager
def dry_cpu(target: Target) -> Iterator[DryDevice]:
    """Write sources for this target, and run nothing."""
    before = Device.opened.get("CPU")
    cache.clear()
    device = DryDevice(target)
    Device.opened["CPU"] = device
    try:
        with Context(CACHELEVEL=0, POISON=0, SPEC=1, VERIFY=0):
            yield device
    finally:
        cache.clear()
        del Device.opened["CPU"]
        if before is not None:
            Device.opened["CPU"] = before
