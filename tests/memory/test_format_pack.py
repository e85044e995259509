"""Pack letters: trailing counts and orders, optional alignment."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassgrad.memory.errors import FormatError
from glassgrad.memory.format import item_size_from_format, parse_format
from glassgrad.memory.item import extract_item

SAME = {  # pack letter -> what struct calls it
    "c": "<b", "C": "<B", "s": "=h", "S<": "<H", "S>": ">H", "l": "=i", "L>": ">I", "q>": ">q",
    "Q": "=Q", "n": ">H", "N": ">I", "v": "<H", "V": "<I", "f": "=f", "e": "<f", "g": ">f",
    "d": "=d", "E": "<d", "G": ">d", "l!": "@l", "L_": "@L", "i": "@i", "I>": ">I", "j": "@n",
}  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(sorted(SAME)), st.integers(0, 3)), max_size=5), st.data())
def test_packed_items_are_read_as_struct_reads_each_of_them(
    parts: list[tuple[str, int]], data: st.DataObject
) -> None:
    fmt = "".join(f"{letter}{count}" for letter, count in parts)
    size, components = parse_format(fmt, "pack")
    raw = data.draw(st.binary(min_size=size, max_size=size))
    wanted, place = [], 0
    for letter, count in parts:
        for _ in range(count):
            wanted += struct.unpack_from(SAME[letter], raw, place)
            place += struct.calcsize(SAME[letter])
    assert place == size
    got = extract_item(raw, components)
    got = got if isinstance(got, tuple) else (got,)
    assert repr(list(got)) == repr(wanted)


@pytest.mark.parametrize(
    ("fmt", "size", "offsets"),
    [
        ("cl", 5, [0, 1]),
        ("|cl", 8, [0, 4]),
        ("|lc", 8, [0, 4]),
        ("|cqs", 24, [0, 8, 16]),
        ("c x3 l", 8, [0, 4]),
        ("|c2 s", 4, [0, 2]),
    ],
)
def test_a_bar_requests_alignment(fmt: str, size: int, offsets: list[int]) -> None:
    found, components = parse_format(fmt, "pack")
    assert found == size
    assert [part.offset for part in components] == offsets


def test_no_format_is_an_unsigned_byte() -> None:
    assert item_size_from_format(None, "pack") == 1
    assert extract_item(b"\xff", parse_format(None, "pack")[1]) == 255


@pytest.mark.parametrize(("fmt", "pos"), [("cz", 1), ("n>", 1), ("f!", 1), ("c*", 1), ("ll|", 2)])
def test_errors_name_their_position(fmt: str, pos: int) -> None:
    with pytest.raises(FormatError) as caught:
        parse_format(fmt, "pack")
    assert (caught.value.format, caught.value.pos) == (fmt, pos)
