"""Format -> item size and components: PEP 3118, as in `struct` and NumPy, with extensions.

    item    = [(shape)] [order] [count] kind [:name:]        order, shape and count in any order
    kind    = letter | Zf Zd Zg | T{item…} | &item | X{…}
    order   = @ native, aligned   ^ native, packed   = < > ! standard sizes, packed

An order applies until the next one, even across the braces of T{}, as in NumPy.
"""

from __future__ import annotations

import struct
import sys
from ctypes import c_longdouble, sizeof
from functools import lru_cache
from math import prod

from glassgrad.base.fast_dataclasses import frozen
from glassgrad.memory.errors import FormatError
from glassgrad.memory.format_pack import parse_pack
from glassgrad.memory.item import Component

LITTLE = sys.byteorder == "little"
POINTER = struct.calcsize("P")
LONG_DOUBLE = sizeof(c_longdouble)

ORDERS = frozenset("@^=<>!")
IS_LITTLE = {"@": LITTLE, "^": LITTLE, "=": LITTLE, "<": True, ">": False, "!": False}
STANDARD = {
    "x": 1, "c": 1, "b": 1, "B": 1, "?": 1, "h": 2, "H": 2, "i": 4, "I": 4, "l": 4, "L": 4,
    "q": 8, "Q": 8, "e": 2, "f": 4, "d": 8, "s": 1, "p": 1, "u": 2, "w": 4, "g": LONG_DOUBLE,
}  # fmt: skip
NATIVE = STANDARD | {letter: struct.calcsize(letter) for letter in "hHiIlLqQefdnNP"}
NATIVE |= {"O": POINTER, "&": POINTER, "X": POINTER}
TEXT = frozenset("spuw")  # a count is the length of the text


@frozen
class Prefix:
    """The shape and count before a letter, if any."""

    shape: tuple[int, ...] | None
    count: int | None


@frozen
class Kind:
    """The type of an item, before repetition and placement."""

    letters: str
    size: int
    align: int
    parts: tuple[Component, ...] = ()


class Reader:
    """A parser of one format."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 0
        self.order = "@"

    def fail(self, message: str, pos: int | None = None) -> FormatError:
        return FormatError(message, self.text, self.pos if pos is None else pos)

    def peek(self) -> str:
        """The next letter that is not a blank; empty at the end."""
        text = self.text
        while self.pos < len(text) and text[self.pos].isspace():
            self.pos += 1
        return text[self.pos] if self.pos < len(text) else ""

    def items(self, closer: str) -> tuple[int, int, tuple[Component, ...]]:
        """Items up to the closer: (size without tail padding, alignment, components)."""
        found: list[Component] = []
        offset, align = 0, 1
        while (letter := self.peek()) != closer:
            if not letter:
                raise self.fail("a '}' is missing")
            if letter == "}":
                raise self.fail("a '}' has no matching '{'")
            offset, needed = self.item(offset, found)
            align = max(align, needed)
        self.pos += len(closer)
        return offset, align, tuple(found)

    def item(self, offset: int, found: list[Component]) -> tuple[int, int]:
        """Parse an item at an offset, after padding: (the offset after it, alignment)."""
        prefix = self.prefix()
        if not self.peek():  # a trailing order
            if prefix.shape is not None or prefix.count is not None:
                raise self.fail("a letter is missing")
            return offset, 1
        kind = self.kind()
        is_aligned = self.order == "@"
        align = kind.align if is_aligned else 1
        offset += -offset % align
        name = self.name()
        shape = prefix.shape or ()
        count = 1 if prefix.count is None else prefix.count
        if kind.letters in TEXT:
            size, repeat = kind.size * count, prod(shape)
        else:
            size, repeat = kind.size, count * prod(shape)
        if kind.letters != "x" and (repeat or shape):
            shape = (*shape, count) if shape and kind.letters not in TEXT and count != 1 else shape
            little = IS_LITTLE[self.order]
            found.append(
                Component(kind.letters, offset, size, repeat, little, name, shape, kind.parts)
            )
        return offset + size * repeat, align

    def prefix(self) -> Prefix:
        shape: tuple[int, ...] | None = None
        count: int | None = None
        while letter := self.peek():
            if letter in ORDERS:
                self.order = letter
                self.pos += 1
            elif letter == "(" and shape is None:
                shape = self.shape()
            elif letter.isdecimal() and letter.isascii() and count is None:
                count = self.number()
            else:
                break
        return Prefix(shape, count)

    def number(self) -> int:
        start = self.pos
        while self.pos < len(self.text) and self.text[self.pos] in "0123456789":
            self.pos += 1
        if self.pos == start:
            raise self.fail("a number is missing")
        value = int(self.text[start : min(self.pos, start + 20)])
        if value >= sys.maxsize:
            raise self.fail("the number is too large", start)
        return value

    def shape(self) -> tuple[int, ...]:
        self.pos += 1
        sizes: list[int] = []
        while self.peek() != ")":
            if sizes:
                if self.peek() != ",":
                    raise self.fail("a ',' or ')' is missing")
                self.pos += 1
                if self.peek() == ")":
                    break
            self.peek()
            sizes.append(self.number())
        self.pos += 1
        return tuple(sizes)

    def name(self) -> str | None:
        if self.peek() != ":":
            return None
        end = self.text.find(":", self.pos + 1)
        if end < 0:
            raise self.fail("the name does not end")
        found = self.text[self.pos + 1 : end]
        self.pos = end + 1
        return found

    def kind(self) -> Kind:
        start, letter = self.pos, self.peek()
        self.pos += 1
        if letter == "T":
            return self.record()
        if letter == "Z":
            part = self.peek()
            if part not in ("f", "d", "g"):
                raise self.fail("complex is Zf, Zd or Zg")
            self.pos += 1
            size = STANDARD[part]
            return Kind(letter + part, 2 * size, size)
        if letter == "&":
            self.item(0, [])
        elif letter == "X":
            self.braces()
        sizes = NATIVE if self.order in "@^" or letter in "O&X" else STANDARD
        size = sizes.get(letter, 0)
        if not size:
            known = letter in NATIVE
            only = f"{letter!r} has no standard size" if known else f"unknown type {letter!r}"
            raise self.fail(only, start)
        return Kind(letter, size, 1 if letter == "x" else size)

    def record(self) -> Kind:
        if self.peek() != "{":
            raise self.fail("'T' is followed by '{'")
        self.pos += 1
        size, align, parts = self.items("}")
        if self.order == "@":
            size += -size % align
        return Kind("T", size, align, parts)

    def braces(self) -> None:
        if self.peek() != "{":
            raise self.fail("'X' is followed by '{'")
        depth = 0
        while self.pos < len(self.text):
            depth += {"{": 1, "}": -1}.get(self.text[self.pos], 0)
            self.pos += 1
            if not depth:
                return
        raise self.fail("a '}' is missing")


def parse_struct(text: str) -> tuple[int, tuple[Component, ...]]:
    size, _, found = Reader(text).items("")
    return size, found


PARSERS = {"struct": parse_struct, "pack": parse_pack}
BYTE = {"struct": "B", "pack": "C"}  # the format None


@lru_cache(maxsize=512)
def parse_format(fmt: str | None, dialect: str = "struct") -> tuple[int, tuple[Component, ...]]:
    """The size and the components of an item.

    >>> parse_format("hi")[0], parse_format("=hi")[0], parse_format("T{i:key:b:flag:}")[0]
    (8, 6, 8)
    """
    if dialect not in PARSERS:
        raise ValueError(f"unknown dialect {dialect!r}: use one of {', '.join(PARSERS)}")
    return PARSERS[dialect](BYTE[dialect] if fmt is None else fmt)


def item_size_from_format(fmt: str | None, dialect: str = "struct") -> int:
    """The size of an item in bytes; None means an unsigned byte.

    >>> item_size_from_format("Zd"), item_size_from_format("(2,3)<h"), item_size_from_format(None)
    (16, 12, 1)
    """
    return parse_format(fmt, dialect)[0]
