"""Relocations are encoded as the instructions require."""

from __future__ import annotations

import struct

import pytest

from glassgrad.devices.cpu.elf import ObjectError
from glassgrad.devices.cpu.relocate import AARCH64, RULES, X86_64

PLACE = 0x7F0000001000


def filled(machine: int, kind: int, word: int, value: int, place: int = PLACE) -> int:
    memory = bytearray(struct.pack("<Q", word))
    RULES[machine][kind].fill(memoryview(memory), 0, value, place)
    return int(struct.unpack_from("<Q", memory)[0])


def test_x86_64_words_are_absolute_or_relative() -> None:
    assert filled(X86_64, 1, 0, PLACE + 5) == PLACE + 5
    for kind in (2, 4, 9, 41, 42):
        assert filled(X86_64, kind, 0, PLACE - 16) == 0xFFFFFFF0
    with pytest.raises(struct.error):
        filled(X86_64, 2, 0, PLACE + (1 << 31))


@pytest.mark.parametrize("distance", [0, 4, 4096, -4, -(1 << 27), (1 << 27) - 4])
def test_aarch64_branches_count_instructions(distance: int) -> None:
    word = filled(AARCH64, 283, 0x94000000, PLACE + distance)
    steps = word & 0x3FFFFFF
    assert word >> 26 == 0x94000000 >> 26
    assert (steps - (1 << 26) if steps >> 25 else steps) * 4 == distance


@pytest.mark.parametrize("distance", [2, 1 << 27, -(1 << 27) - 4])
def test_aarch64_branches_out_of_range_are_refused(distance: int) -> None:
    with pytest.raises(ObjectError, match="out of reach"):
        filled(AARCH64, 283, 0x94000000, PLACE + distance)


@pytest.mark.parametrize("target", [PLACE + 0x23458, PLACE - 0x5678, PLACE + 0xFF0])
@pytest.mark.parametrize(("kind", "scale"), [(277, 1), (284, 2), (285, 4), (286, 8), (299, 16)])
def test_aarch64_addresses_are_a_page_and_an_offset(target: int, kind: int, scale: int) -> None:
    target -= target % scale
    page = filled(AARCH64, 275, 0x90000003, target)
    pages = (page >> 29 & 3) | (page >> 5 & 0x7FFFF) << 2
    pages -= (1 << 21) if pages >> 20 else 0
    place = filled(AARCH64, kind, 0x3DC00063, target) >> 10 & 0xFFF
    assert (PLACE // 4096 + pages) * 4096 + place * scale == target
    assert page & 0x9F00001F == 0x90000003
