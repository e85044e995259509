"""Memory as an interpreted program sees it: every access is checked, and races are found.

A buffer is read and written element by element. An access outside of it, a read of scratch that
nobody has written, and two threads that meet at one element without a barrier between them are
errors, where a real machine would quietly compute something else.
"""

from __future__ import annotations

import ctypes
import struct
from collections import defaultdict
from typing import NamedTuple

from glassgrad.base.dtype import ConstType, DType
from glassgrad.base.rounding import from_bits, to_bits

WORDS = {8: "B", 16: "H"}  # how narrow floats lie in memory


class AccessError(IndexError):
    """A program touches memory that it must not touch, or not now."""


class Who(NamedTuple):
    """A thread between two barriers: those of one group with other epochs have waited for it."""

    group: int
    thread: int
    epoch: int

    def waits_for(self, other: Who) -> bool:
        if self.group != other.group:
            return False
        return self.thread == other.thread or self.epoch != other.epoch


class Memory:
    """Elements of one dtype, and who used which of them."""

    def __init__(self, name: str, dtype: DType, size: int, has_threads: bool) -> None:
        self.name = name
        self.dtype = dtype
        self.size = size
        self.has_threads = has_threads
        self.writers: dict[int, Who] = {}
        self.readers: defaultdict[int, set[Who]] = defaultdict(set)

    def read(self, at: int, who: Who) -> ConstType:
        self._check(at)
        if self.has_threads:
            writer = self.writers.get(at)
            if writer is not None and not who.waits_for(writer):
                self._race(at, who, "reads", writer, "wrote")
            self.readers[at].add(who)
        return self.get(at)

    def write(self, at: int, value: ConstType, who: Who) -> None:
        self._check(at)
        if self.has_threads:
            self._check_write(at, value, who)
        self.set(at, value)

    def _check(self, at: int) -> None:
        if not 0 <= at < self.size:
            raise AccessError(f"element {at} of {self.name}, which has {self.size}")

    def _check_write(self, at: int, value: ConstType, who: Who) -> None:
        for reader in self.readers.pop(at, ()):
            if not who.waits_for(reader):
                self._race(at, who, "writes", reader, "read")
        writer = self.writers.get(at)
        # Several threads may store the same value: tiles that overlap do.
        if writer is not None and not who.waits_for(writer):
            if to_bits(self.get(at), self.dtype) != to_bits(value, self.dtype):
                self._race(at, who, "writes", writer, "wrote")
        self.writers[at] = who

    def _race(self, at: int, who: Who, does: str, other: Who, did: str) -> None:
        raise AccessError(
            f"thread {who.thread} of group {who.group} {does} element {at} of {self.name}, which "
            f"thread {other.thread} of group {other.group} {did} with no barrier between"
        )

    def get(self, at: int) -> ConstType:
        raise NotImplementedError

    def set(self, at: int, value: ConstType) -> None:
        raise NotImplementedError


class HostMemory(Memory):
    """Memory of this process, at an address."""

    def __init__(self, name: str, dtype: DType, size: int, has_threads: bool, address: int) -> None:
        super().__init__(name, dtype, size, has_threads)
        self.bytes = (ctypes.c_char * (size * dtype.itemsize)).from_address(address)
        self.is_narrow = dtype.format is None
        self.format = struct.Struct("<" + (dtype.format or WORDS[dtype.bits]))

    def get(self, at: int) -> ConstType:
        found: ConstType
        (found,) = self.format.unpack_from(self.bytes, at * self.format.size)
        return from_bits(int(found), self.dtype) if self.is_narrow else found

    def set(self, at: int, value: ConstType) -> None:
        stored = to_bits(value, self.dtype) if self.is_narrow else value
        self.format.pack_into(self.bytes, at * self.format.size, stored)


class ScratchMemory(Memory):
    """Memory that only lives while the program runs; it holds nothing at first."""

    def __init__(self, name: str, dtype: DType, size: int, has_threads: bool) -> None:
        super().__init__(name, dtype, size, has_threads)
        self.elements: list[ConstType | None] = [None] * size

    def get(self, at: int) -> ConstType:
        found = self.elements[at]
        if found is None:
            raise AccessError(
                f"element {at} of {self.name} is read before anything is stored there"
            )
        return found

    def set(self, at: int, value: ConstType) -> None:
        self.elements[at] = value


class Pointer(NamedTuple):
    """An element of a memory."""

    memory: Memory
    at: int
