"""Items are values that can be written back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassgrad.base.errors import FormatError
from glassgrad.memory.format import parse_format
from glassgrad.memory.item import extract_item, store_item


@pytest.mark.parametrize(
    ("fmt", "value"),
    [
        ("i", -5),
        (">Q", (1 << 64) - 1),
        ("?", True),
        ("c", b"x"),
        ("e", 1.5),
        ("Zf", 1 + 2j),
        (">Zd", -1.5j),
        ("g", 0.1),
        (">g", 0.1),
        ("Zg", 3 - 0.25j),
        ("4s", b"abcd"),
        ("4p", b"abc"),
        ("3w", "añ😀"),
        (">2u", "hé"),
        ("2h", (1, 2)),
        ("(2,2)b", ((1, 2), (3, 4))),
        ("T{i:a:(2)f:b:T{b}:c:}", (7, (0.5, 1.5), (9,))),
        ("P", 1234),
        ("hxb", (1, 2)),
        ("0s", b""),
    ],
)
def test_stored_items_are_extracted_unchanged(fmt: str, value: object) -> None:
    size, components = parse_format(fmt)
    raw = bytearray(size)
    store_item(memoryview(raw), components, value)
    assert extract_item(raw, components) == value
    if size:
        assert any(raw)


@given(st.binary(min_size=24, max_size=24))
def test_reading_and_writing_back_keeps_the_bytes(raw: bytes) -> None:
    _, components = parse_format("T{i:a:>h:b:<H:c:(2)q:d:}")
    copy = bytearray(24)
    store_item(memoryview(copy), components, extract_item(raw, components))
    assert copy == raw


@pytest.mark.parametrize(
    ("fmt", "value"),
    [("b", 300), ("i", "x"), ("2h", (1,)), ("2s", b"abc"), ("(2)b", (1, 2, 3)), ("i", 1.5)],
)
def test_values_that_do_not_fit_are_refused(fmt: str, value: object) -> None:
    size, components = parse_format(fmt)
    with pytest.raises(FormatError, match="does not fit"):
        store_item(memoryview(bytearray(size)), components, value)


def test_objects_are_neither_read_nor_written() -> None:
    size, components = parse_format("O")
    with pytest.raises(FormatError, match="cannot be read"):
        extract_item(bytes(size), components)
    with pytest.raises(FormatError, match="cannot be written"):
        store_item(bytearray(size), components, object())
