"""Object files are parsed, or refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.files.objects import CODE

from glassgrad.devices.cpu.elf import EXECUTE, ObjectError, read_elf
from glassgrad.devices.cpu.loader import can_load

pytestmark = pytest.mark.skipif(not can_load(), reason="this system has other object files")


def test_sections_symbols_and_relocations_are_found() -> None:
    elf = read_elf(CODE)
    text = next(i for i, section in enumerate(elf.sections) if section.flags & EXECUTE)
    names = {symbol.name: symbol for symbol in elf.symbols}
    assert names["element"].section == text
    assert names["sinf"].section == 0
    assert {elf.symbols[found.symbol].name for found in elf.relocations} >= {"sinf"}


@pytest.mark.parametrize("code", [b"", b"\x7fELF", CODE[:64], CODE[:-1], b"x" * 4096])
def test_incomplete_object_files_are_refused(code: bytes) -> None:
    with pytest.raises(ObjectError):
        read_elf(code)


@given(st.integers(0, max(len(CODE) - 1, 0)), st.integers(0, 255))
def test_a_wrong_byte_is_refused_or_harmless(place: int, byte: int) -> None:
    damaged = bytearray(CODE)
    damaged[place] = byte
    try:
        elf = read_elf(bytes(damaged))
    except ObjectError:
        return
    for section in elf.sections:
        assert section.kind == 8 or section.start + section.nbytes <= len(CODE)
    for found in elf.relocations:
        assert found.symbol < len(elf.symbols)
        assert found.offset < elf.sections[found.section].nbytes
