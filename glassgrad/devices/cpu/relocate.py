"""A relocation and addresses -> the bytes to write, for x86-64 and AArch64.

S is the address of the symbol, A the addend, P the address of the relocated field, G the address of
a word that holds S. Numbers and formulas are those of the processors' ABI supplements.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from glassgrad.devices.cpu.elf import ObjectError

X86_64, AARCH64 = 62, 183
PAGE = 4096
Fill = Callable[[memoryview, int, int, int], None]  # memory, offset, S + A, P


class Rule(NamedTuple):
    """How one kind of relocation is applied; `via` is what a symbol elsewhere is reached
    through.
    """

    fill: Fill
    via: str = ""
    nbytes: int = 4


def _absolute(memory: memoryview, at: int, value: int, place: int) -> None:
    struct.pack_into("<Q", memory, at, value % (1 << 64))


def _relative(memory: memoryview, at: int, value: int, place: int) -> None:
    struct.pack_into("<i", memory, at, value - place)


def _relative_64(memory: memoryview, at: int, value: int, place: int) -> None:
    struct.pack_into("<q", memory, at, value - place)


def _branch(memory: memoryview, at: int, value: int, place: int) -> None:
    """A distance in instructions in 26 bits."""
    distance = value - place
    _need(distance % 4 == 0 and -(1 << 27) <= distance < 1 << 27)
    _insert(memory, at, (distance >> 2) & 0x3FFFFFF, 0xFC000000)


def _page(memory: memoryview, at: int, value: int, place: int) -> None:
    """A distance in pages in 21 bits, in two parts."""
    pages = value // PAGE - place // PAGE
    _need(-(1 << 20) <= pages < 1 << 20)
    _insert(memory, at, (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5, 0x9F00001F)


def _in_page(scale: int) -> Fill:
    """An offset in a page in 12 bits, in units of the access size."""

    def fill(memory: memoryview, at: int, value: int, place: int) -> None:
        _need(value % scale == 0)
        _insert(memory, at, (value % PAGE // scale) << 10, 0xFFC003FF)

    return fill


def _insert(memory: memoryview, at: int, bits: int, kept: int) -> None:
    (word,) = struct.unpack_from("<I", memory, at)
    struct.pack_into("<I", memory, at, word & kept | bits)


def _need(fits: bool) -> None:
    if not fits:
        raise ObjectError("an address is out of reach")


RULES: dict[int, dict[int, Rule]] = {
    X86_64: {
        1: Rule(_absolute, nbytes=8),  # 64: S + A
        2: Rule(_relative),  # PC32: S + A - P
        4: Rule(_relative, "stub"),  # PLT32: S + A - P, for calls
        9: Rule(_relative, "word"),  # GOTPCREL: G + A - P
        24: Rule(_relative_64, nbytes=8),  # PC64
        41: Rule(_relative, "word"),  # GOTPCRELX
        42: Rule(_relative, "word"),  # REX_GOTPCRELX
    },
    AARCH64: {
        257: Rule(_absolute, nbytes=8),  # ABS64
        260: Rule(_relative_64, nbytes=8),  # PREL64
        261: Rule(_relative),  # PREL32
        275: Rule(_page),  # ADR_PREL_PG_HI21
        277: Rule(_in_page(1)),  # ADD_ABS_LO12_NC
        278: Rule(_in_page(1)),  # LDST8_ABS_LO12_NC
        282: Rule(_branch, "stub"),  # JUMP26
        283: Rule(_branch, "stub"),  # CALL26
        284: Rule(_in_page(2)),  # LDST16_ABS_LO12_NC
        285: Rule(_in_page(4)),  # LDST32_ABS_LO12_NC
        286: Rule(_in_page(8)),  # LDST64_ABS_LO12_NC
        299: Rule(_in_page(16)),  # LDST128_ABS_LO12_NC
        311: Rule(_page, "word"),  # ADR_GOT_PAGE
        312: Rule(_in_page(8), "word"),  # LD64_GOT_LO12_NC
    },
}
# A jump to the address in the following eight bytes.
STUBS: dict[int, bytes] = {
    X86_64: b"\xff\x25\x00\x00\x00\x00",
    AARCH64: b"\x50\x00\x00\x58\x00\x02\x1f\xd6",
}
STUB_BYTES = 16
