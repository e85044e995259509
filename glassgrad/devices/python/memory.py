"""The memory of an interpreted program: checks every access, and finds races.

An access outside of a buffer, a read of uninitialized scratch, and conflicting accesses of two
threads without a barrier between them are errors, where a real machine would compute garbage.
"""

from __future__ import annotations

import ctypes
import struct
from collections import defaultdict
from typing import NamedTuple

from glassgrad.base.dtype import ConstType, DType
from glassgrad.base.rounding import from_bits, to_bits

WORDS = {8: "B", 16: "H"}  # the storage of low-precision floats


class AccessError(IndexError):
    """A program makes an invalid or unordered memory access."""


class ThreadState(NamedTuple):
    """A thread between two barriers; `epoch` counts the barriers it has passed."""

    group: int
    thread: int
    epoch: int

    def is_ordered_with(self, other: ThreadState) -> bool:
        """True if a barrier or program order separates the two."""
        if self.group != other.group:
            return False
        return self.thread == other.thread or self.epoch != other.epoch


class Memory:
    """Elements of one dtype, with the last writers and readers of each."""

    def __init__(self, name: str, dtype: DType, size: int, has_threads: bool) -> None:
        self.name = name
        self.dtype = dtype
        self.size = size
        self.has_threads = has_threads
        self.writers: dict[int, ThreadState] = {}
        self.readers: defaultdict[int, set[ThreadState]] = defaultdict(set)

    def read(self, at: int, state: ThreadState) -> ConstType:
        self._check(at)
        if self.has_threads:
            writer = self.writers.get(at)
            if writer is not None and not state.is_ordered_with(writer):
                self._race(at, state, "reads", writer, "wrote")
            self.readers[at].add(state)
        return self.get(at)

    def write(self, at: int, value: ConstType, state: ThreadState) -> None:
        self._check(at)
        if self.has_threads:
            self._check_write(at, value, state)
        self.set(at, value)

    def _check(self, at: int) -> None:
        if not 0 <= at < self.size:
            raise AccessError(f"element {at} of {self.name}, which has {self.size}")

    def _check_write(self, at: int, value: ConstType, state: ThreadState) -> None:
        for reader in self.readers.pop(at, ()):
            if not state.is_ordered_with(reader):
                self._race(at, state, "writes", reader, "read")
        writer = self.writers.get(at)
        # Several threads may store the same value, as overlapping tiles do.
        if writer is not None and not state.is_ordered_with(writer):
            if to_bits(self.get(at), self.dtype) != to_bits(value, self.dtype):
                self._race(at, state, "writes", writer, "wrote")
        self.writers[at] = state

    def _race(self, at: int, state: ThreadState, does: str, other: ThreadState, did: str) -> None:
        raise AccessError(
            f"thread {state.thread} of group {state.group} {does} element {at} of {self.name}, "
            f"which thread {other.thread} of group {other.group} {did} with no barrier between"
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
        self.is_stored_as_bits = dtype.format is None
        self.format = struct.Struct("<" + (dtype.format or WORDS[dtype.bits]))

    def get(self, at: int) -> ConstType:
        found: ConstType
        (found,) = self.format.unpack_from(self.bytes, at * self.format.size)
        return from_bits(int(found), self.dtype) if self.is_stored_as_bits else found

    def set(self, at: int, value: ConstType) -> None:
        stored = to_bits(value, self.dtype) if self.is_stored_as_bits else value
        self.format.pack_into(self.bytes, at * self.format.size, stored)


class ScratchMemory(Memory):
    """Scratch of one run, uninitialized at first."""

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
