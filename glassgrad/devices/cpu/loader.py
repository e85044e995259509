"""Object file -> machine code in this process, without LLVM: mapped, relocated, protected.

Code and constants of an object share one mapping: code first, with stubs that jump to functions
elsewhere (which may be out of reach), then constants, with the addresses of data elsewhere. Neither
is writable afterwards. Anything unknown is an ObjectError, before any code runs.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys
from collections.abc import Iterable
from functools import cache
from typing import Any

from glassgrad.devices.cpu.elf import (
    EXECUTE,
    LOADED,
    NO_BITS,
    UNDEFINED,
    WRITE,
    Elf,
    ObjectError,
    Relocation,
    Section,
    read_elf,
)
from glassgrad.devices.cpu.relocate import RULES, STUB_BYTES, STUBS, Rule

UNWIND_SECTION = ".eh_frame"  # kernels throw no exceptions
WORD_BYTES = 8
LIBRARIES = (None, "libm.so.6")  # the process itself, then libraries it may not have loaded


def can_load() -> bool:
    """True if this system runs such files."""
    return sys.platform == "linux" and sys.byteorder == "little" and sys.maxsize > 1 << 32


class Loaded:
    """Addresses by symbol; the memory is unmapped with the last reference."""

    def __init__(self, memory: mmap.mmap, addresses: dict[str, int]) -> None:
        self.memory = memory
        self.addresses = addresses

    def __getitem__(self, symbol: str) -> int:
        return self.addresses[symbol]


def load(code: bytes, symbols: Iterable[str]) -> Loaded:
    """Load an object file into the memory of this process."""
    image = _Image(read_elf(code))
    image.fill()
    _protect(image.base, image.code_bytes, mmap.PROT_READ | mmap.PROT_EXEC)
    _protect(image.base + image.code_bytes, image.nbytes - image.code_bytes, mmap.PROT_READ)
    return Loaded(image.memory, image.exported(symbols))


class _Image:
    """The layout of an object file in memory, as offsets."""

    def __init__(self, elf: Elf) -> None:
        if elf.machine not in RULES:
            raise ObjectError(f"an object file for machine {elf.machine}")
        self.elf = elf
        used = {i for i, section in enumerate(elf.sections) if _is_loaded(section)}
        self.relocations = [(_rule(elf, f), f) for f in elf.relocations if f.section in used]
        self.sections: dict[int, int] = {}
        end = self._lay_out([i for i in used if elf.sections[i].flags & EXECUTE], 0)
        self.stubs, end = self._reserve("stub", STUB_BYTES, end)  # jumps to functions elsewhere
        self.code_bytes = _aligned(max(end, 1), mmap.PAGESIZE)
        end = self._lay_out([i for i in used if i not in self.sections], self.code_bytes)
        self.words, end = self._reserve("word", WORD_BYTES, end)  # addresses of data elsewhere
        self.nbytes = _aligned(max(end, self.code_bytes + 1), mmap.PAGESIZE)
        self.memory = mmap.mmap(-1, self.nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))

    def _lay_out(self, numbers: Iterable[int], end: int) -> int:
        for number in numbers:
            section = self.elf.sections[number]
            self.sections[number] = end = _aligned(end, section.alignment)
            end += section.nbytes
        return end

    def _reserve(self, via: str, nbytes: int, end: int) -> tuple[dict[int, int], int]:
        """Space for a stub or word for each symbol that needs one."""
        start = _aligned(end, nbytes)
        found = dict.fromkeys([f.symbol for rule, f in self.relocations if rule.via == via])
        if via == "stub":
            found = {n: None for n in found if self.elf.symbols[n].section == UNDEFINED}
        return {n: start + nbytes * i for i, n in enumerate(found)}, start + nbytes * len(found)

    def fill(self) -> None:
        """Copy the sections, and fill in addresses."""
        elf, memory = self.elf, memoryview(self.memory)
        for number, at in self.sections.items():
            section = elf.sections[number]
            there = slice(section.start, section.start + section.nbytes)
            memory[at : at + section.nbytes] = elf.code[there]
        for number, at in self.stubs.items():
            jump = STUBS[elf.machine] + struct.pack("<Q", self._address(number))
            memory[at : at + len(jump)] = jump
        for number, at in self.words.items():
            struct.pack_into("<Q", memory, at, self._address(number))
        for rule, found in self.relocations:
            at = self.sections[found.section] + found.offset
            try:
                rule.fill(memory, at, self._via(rule, found.symbol) + found.addend, self.base + at)
            except struct.error as error:
                raise ObjectError(f"an address is out of reach: {error}") from error

    def _via(self, rule: Rule, number: int) -> int:
        """The address of a symbol, or of its stub or word."""
        if rule.via == "word":
            return self.base + self.words[number]
        if number in self.stubs and rule.via == "stub":
            return self.base + self.stubs[number]
        return self._address(number)

    def _address(self, number: int) -> int:
        symbol = self.elf.symbols[number]
        if symbol.section == UNDEFINED:
            return address_in_process(symbol.name)
        if symbol.section not in self.sections:
            raise ObjectError(f"the symbol {symbol.name} has no address")
        return self.base + self.sections[symbol.section] + symbol.offset

    def exported(self, wanted: Iterable[str]) -> dict[str, int]:
        numbers = {s.name: n for n, s in enumerate(self.elf.symbols) if s.section != UNDEFINED}
        missing = [name for name in wanted if name not in numbers]
        if missing:
            raise ObjectError(f"an object file has no symbol {missing[0]}")
        return {name: self._address(numbers[name]) for name in wanted}


def _is_loaded(section: Section) -> bool:
    if not section.flags & LOADED or section.name == UNWIND_SECTION or not section.nbytes:
        return False
    if section.flags & WRITE or section.kind == NO_BITS:
        raise ObjectError(f"the section {section.name} is writable")
    return True


def _rule(elf: Elf, found: Relocation) -> Rule:
    rule = RULES[elf.machine].get(found.kind)
    if rule is None:
        raise ObjectError(f"a relocation of kind {found.kind}")
    if found.offset + rule.nbytes > elf.sections[found.section].nbytes:
        raise ObjectError("a relocation beyond the end of its section")
    return rule


def _aligned(offset: int, step: int) -> int:
    return -(-offset // step) * step


@cache
def address_in_process(name: str) -> int:
    """The address of a library's function or variable in this process."""
    for library in LIBRARIES:
        try:
            return ctypes.addressof(ctypes.c_char.in_dll(_library(library), name))
        except (OSError, ValueError):
            continue
    raise ObjectError(f"this process has no symbol {name}")


@cache
def _library(name: str | None) -> Any:
    return ctypes.CDLL(name, use_errno=True)


def _protect(address: int, nbytes: int, protection: int) -> None:
    place, size = ctypes.c_void_p(address), ctypes.c_size_t(nbytes)
    if _library(None).mprotect(place, size, protection):
        raise ObjectError(
            f"the system refuses to make memory executable: error {ctypes.get_errno()}"
        )
