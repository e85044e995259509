"""An object file as LLVM writes it -> Elf: sections, symbols and relocations, all bounds checked.

Reads 64-bit little-endian relocatable files only. Anything else, and anything inconsistent, is an
ObjectError; callers then compile again.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELOCATION = struct.Struct("<QQq")
IDENTITY = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian, version 1
RELOCATABLE = 1
SYMBOLS, STRINGS, RELOCATIONS, NO_BITS = 2, 3, 4, 8  # kinds of sections
WRITE, LOADED, EXECUTE = 1, 2, 4  # flags of sections
UNDEFINED, RESERVED = 0, 0xFF00  # special section numbers
MAX_ALIGNMENT = 4096


class ObjectError(ValueError):
    """An object file that cannot be loaded."""


class Section(NamedTuple):
    """A section of the file."""

    name: str
    kind: int
    flags: int
    start: int
    nbytes: int
    link: int
    target: int
    alignment: int


class Symbol(NamedTuple):
    """A name for an offset in a section; UNDEFINED: for something outside of the file."""

    name: str
    section: int
    offset: int


class Relocation(NamedTuple):
    """An offset in a section where an address is to be filled in."""

    section: int
    offset: int
    kind: int
    symbol: int
    addend: int


class Elf(NamedTuple):
    """A parsed object file."""

    machine: int
    code: bytes
    sections: list[Section]
    symbols: list[Symbol]
    relocations: list[Relocation]


def read_elf(code: bytes) -> Elf:
    """Parse an object file."""
    try:
        return _read(code)
    except (struct.error, IndexError, OverflowError, UnicodeDecodeError) as error:
        raise ObjectError(f"an object file is damaged: {error}") from error


def _read(code: bytes) -> Elf:
    identity, kind, machine, _, _, _, table, *_, width, count, names = HEADER.unpack_from(code)
    _need(identity.startswith(IDENTITY) and kind == RELOCATABLE, "no 64-bit relocatable file")
    _need(width == SECTION.size and names < count, "sections of unknown form")
    rows = [SECTION.unpack_from(code, table + width * i) for i in range(count)]
    texts = Section("", *_fields(rows[names]))
    sections = [Section(_text(code, texts, row[0]), *_fields(row)) for row in rows]
    for section in sections:
        _check_section(section, len(code), count)
    tables = [section for section in sections if section.kind == SYMBOLS]
    _need(len(tables) == 1, "not one table of symbols")
    symbols = _symbols(code, sections, tables[0])
    return Elf(machine, code, sections, symbols, _relocations(code, sections, len(symbols)))


def _fields(row: tuple[int, ...]) -> tuple[int, int, int, int, int, int, int]:
    _, kind, flags, _, start, nbytes, link, target, alignment, _ = row
    return kind, flags, start, nbytes, link, target, max(1, alignment)


def _check_section(section: Section, nbytes: int, count: int) -> None:
    has_bytes = section.kind != NO_BITS
    _need(not has_bytes or section.start + section.nbytes <= nbytes, "a section beyond its end")
    _need(section.link < count, "a section that belongs to none")
    is_power = section.alignment & (section.alignment - 1) == 0
    _need(is_power and section.alignment <= MAX_ALIGNMENT, "a section of odd alignment")


def _symbols(code: bytes, sections: list[Section], table: Section) -> list[Symbol]:
    texts, found = sections[table.link], []
    for start in range(table.start, table.start + table.nbytes, SYMBOL.size):
        name, _, _, section, value, _ = SYMBOL.unpack_from(code, start)
        is_offset = section < RESERVED
        _need(not is_offset or section < len(sections), "a symbol of no section")
        is_inside = not is_offset or not section or value <= sections[section].nbytes
        _need(is_inside, "a symbol beyond the end of its section")
        found.append(Symbol(_text(code, texts, name), section, value))
    return found


def _relocations(code: bytes, sections: list[Section], symbols: int) -> list[Relocation]:
    found = []
    for table in sections:
        if table.kind != RELOCATIONS:
            continue
        _need(table.target < len(sections), "relocations of no section")
        for start in range(table.start, table.start + table.nbytes, RELOCATION.size):
            offset, about, addend = RELOCATION.unpack_from(code, start)
            number, kind = about >> 32, about & 0xFFFFFFFF
            is_inside = offset + 4 <= sections[table.target].nbytes
            _need(number < symbols, "a relocation of no symbol")
            _need(is_inside, "a relocation beyond the end of its section")
            found.append(Relocation(table.target, offset, kind, number, addend))
    return found


def _text(code: bytes, section: Section, offset: int) -> str:
    start, end = section.start + offset, section.start + section.nbytes
    _need(section.kind == STRINGS and start < end <= len(code), "a name outside of its table")
    stop = code.find(b"\0", start, end)
    _need(stop >= 0, "a name without an end")
    return code[start:stop].decode()


def _need(is_so: bool, found: str) -> None:
    if not is_so:
        raise ObjectError(f"an object file is damaged: {found}")
