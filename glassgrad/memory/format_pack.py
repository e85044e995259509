"""Pack letters -> item size and components: the dialect of Ruby's pack, where counts come last.

item   = letter [! or _ for native size] [< or > for byte order] [count]
format = [| for alignment] item…
"""

from __future__ import annotations

import struct
import sys

from glassgrad.base.fast_dataclasses import frozen
from glassgrad.memory.errors import FormatError
from glassgrad.memory.item import Component

LITTLE = sys.byteorder == "little"


@frozen
class Letter:
    """A pack letter: its struct letter, and the struct letter of its native size."""

    letter: str
    native: str = ""
    is_little: bool | None = None  # None: native, or given by < or >

    @property
    def size(self) -> int:
        return struct.calcsize(f"={self.letter}")


LETTERS = {
    "c": Letter("b"), "C": Letter("B"), "x": Letter("x"),
    "s": Letter("h", "h"), "S": Letter("H", "H"),
    "i": Letter("i", "i"), "I": Letter("I", "I"),
    "l": Letter("i", "l"), "L": Letter("I", "L"),
    "q": Letter("q", "q"), "Q": Letter("Q", "Q"),
    "j": Letter("q", "n"), "J": Letter("Q", "N"),
    "n": Letter("H", is_little=False), "N": Letter("I", is_little=False),
    "v": Letter("H", is_little=True), "V": Letter("I", is_little=True),
    "f": Letter("f"), "F": Letter("f"), "d": Letter("d"), "D": Letter("d"),
    "e": Letter("f", is_little=True), "g": Letter("f", is_little=False),
    "E": Letter("d", is_little=True), "G": Letter("d", is_little=False),
}  # fmt: skip
ALWAYS_NATIVE = frozenset("iIjJ")


def parse_pack(text: str) -> tuple[int, tuple[Component, ...]]:
    """The size and the components of a format in pack letters."""
    found: list[Component] = []
    is_aligned = text.startswith("|")
    pos, offset, widest = int(is_aligned), 0, 1
    while pos < len(text):
        if text[pos].isspace():
            pos += 1
            continue
        part, pos = _item(text, pos)
        if is_aligned and part.format != "x":
            offset += -offset % part.size
            widest = max(widest, part.size)
        if part.format != "x" and part.repeat:
            found.append(
                Component(part.format, offset, part.size, part.repeat, part.is_little, None)
            )
        offset += part.size * part.repeat
    return offset + -offset % widest, tuple(found)


def _item(text: str, pos: int) -> tuple[Component, int]:
    """An item without its offset, and the position after it."""
    start, letter = pos, text[pos]
    if letter not in LETTERS:
        raise FormatError(f"unknown type {letter!r}", text, pos)
    row = LETTERS[letter]
    pos += 1
    is_native = letter in ALWAYS_NATIVE
    little = LITTLE if row.is_little is None else row.is_little
    while pos < len(text) and text[pos] in "!_<>":
        if not row.native:
            raise FormatError(f"{letter!r} does not accept {text[pos]!r}", text, pos)
        if text[pos] in "!_":
            is_native = True
        else:
            little = text[pos] == "<"
        pos += 1
    count_start = pos
    while pos < len(text) and text[pos] in "0123456789":
        pos += 1
    count = int(text[count_start:pos] or "1")
    if count >= sys.maxsize:
        raise FormatError("the number is too large", text, start)
    code, size = row.letter, row.size
    if is_native:
        code, size = row.native, struct.calcsize(row.native)
    return Component(code, 0, size, count, little, None), pos
