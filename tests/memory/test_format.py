"""Formats agree with struct, NumPy and ctypes."""

from __future__ import annotations

import ctypes
import pickle
import struct

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from glassgrad.memory.errors import FormatError
from glassgrad.memory.format import item_size_from_format, parse_format
from glassgrad.memory.item import end, extract_item

ORDERS = st.sampled_from(["", "@", "=", "<", ">", "!"])
LETTERS = "xcbB?hHiIlLqQefdsp"
COUNTS = st.one_of(st.just(""), st.integers(0, 5).map(str))


@st.composite
def struct_formats(draw: st.DrawFn) -> str:
    order = draw(ORDERS)
    letters = LETTERS + ("nNP" if order in ("", "@") else "")
    parts = draw(st.lists(st.tuples(COUNTS, st.sampled_from(letters)), max_size=6))
    gap = draw(st.sampled_from(["", " "]))
    return order + gap.join(count + letter for count, letter in parts)


@given(struct_formats(), st.randoms(use_true_random=False))
def test_sizes_and_values_are_those_of_struct(fmt: str, random: object) -> None:
    size, components = parse_format(fmt)
    assert size == struct.calcsize(fmt) == item_size_from_format(fmt)
    raw = random.randbytes(size)  # type: ignore[attr-defined]
    wanted = struct.unpack(fmt, raw)
    got = extract_item(raw, components)
    got = got if isinstance(got, tuple) else (got,)
    assert [type(value) for value in got] == [type(value) for value in wanted]
    assert [repr(value) for value in got] == [repr(value) for value in wanted]


SCALARS = st.sampled_from(
    ["i1", "u1", "<i2", ">i2", "<u4", ">i8", "<f2", ">f4", "<f8", "<c8", ">c16", "?", "S3", "U2"]
)


@st.composite
def records(draw: st.DrawFn, depth: int = 2) -> list[object]:
    fields = []
    for number in range(draw(st.integers(1, 4))):
        nested = depth and draw(st.integers(0, 4)) == 0
        kind = draw(records(depth - 1)) if nested else draw(SCALARS)  # type: ignore[call-arg]
        shape = () if nested else draw(st.sampled_from([(), (), (2,), (2, 3)]))
        fields.append((f"f{number}", kind, shape) if shape else (f"f{number}", kind))
    return fields


def as_tuples(value: object) -> object:
    if isinstance(value, np.ndarray):
        return tuple(as_tuples(item) for item in value)
    if isinstance(value, np.void):
        return tuple(as_tuples(value[name]) for name in value.dtype.names)
    if isinstance(value, np.bytes_):
        return bytes(value)
    return value.item() if isinstance(value, np.generic) else value


def bare(value: object) -> object:
    """NumPy cuts zeros off the end of byte texts; formats cannot know that."""
    if isinstance(value, tuple):
        return tuple(bare(item) for item in value)
    return value.rstrip(b"\0") if isinstance(value, bytes) else value


@given(records(), st.booleans(), st.randoms(use_true_random=False))
def test_records_of_numpy_are_read_as_numpy_reads_them(
    fields: list[object], align: bool, random: object
) -> None:
    dtype = np.dtype(fields, align=align)  # type: ignore[call-overload]
    fmt = memoryview(np.zeros(1, dtype)).format
    size, components = parse_format(fmt)
    # NumPy writes no tail padding where only the item size tells that there is none.
    assume(dtype.itemsize in (size, end(components)))
    raw = bytes(random.choice(b"\0\1\2A") for _ in range(dtype.itemsize))  # type: ignore
    if "w" in fmt:
        raw = bytes(dtype.itemsize)  # not every four bytes are a letter
    wanted = as_tuples(np.frombuffer(raw, dtype)[0])
    assert repr(bare(extract_item(raw, components))) == repr(bare(wanted))


class Point(ctypes.Structure):
    _fields_ = (("x", ctypes.c_double), ("y", ctypes.c_short))


class PackedPoint(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("x", ctypes.c_byte), ("y", ctypes.c_double))


@pytest.mark.parametrize(
    ("kind", "fmt"),
    [
        (Point, "T{d:x:h:y:}"),
        (PackedPoint, "T{b:x:^d:y:}"),
        (ctypes.c_longdouble, "g"),
        (ctypes.c_void_p, "P"),
        (ctypes.c_float * 3, "3f"),
    ],
)
def test_sizes_are_those_of_ctypes(kind: type, fmt: str) -> None:
    assert item_size_from_format(fmt) == ctypes.sizeof(kind)


@pytest.mark.parametrize(
    ("fmt", "size"),
    [
        ("T{i:a:b:b:}", 8),
        ("T{b:a:T{b:q:d:r:}:n:}", 24),
        ("(2,3)T{b:a:h:b:}", 24),
        ("bT{i}b", 9),
        ("^bi", 5),
        ("b<i>i@i", 16),
        ("(2)3i", 24),
        ("&i", struct.calcsize("P")),
        ("X{i}", struct.calcsize("P")),
        ("Zg", 2 * ctypes.sizeof(ctypes.c_longdouble)),
        ("3w", 12),
        ("", 0),
        ("<", 0),
        (None, 1),
    ],
)
def test_formats_that_struct_lacks_have_a_size(fmt: str, size: int) -> None:
    assert item_size_from_format(fmt) == size


def test_names_orders_and_shapes_are_kept() -> None:
    _, (record,) = parse_format("T{>h:big:(2,3)<f:grid:2w:text:}")
    big, grid, text = record.parts
    assert [part.name for part in record.parts] == ["big", "grid", "text"]
    assert not big.is_little and grid.is_little
    assert grid.shape == (2, 3) and grid.repeat == 6
    assert text.size == 8 and text.repeat == 1


@pytest.mark.parametrize(
    ("fmt", "pos", "why"),
    [
        ("k", 0, "unknown type 'k'"),
        ("i i y", 4, "unknown type 'y'"),
        ("T{i", 3, "'}' is missing"),
        ("i}", 1, "has no matching"),
        ("Ti", 1, "followed by '{'"),
        ("Zi", 1, "Zf, Zd or Zg"),
        ("i:name", 1, "does not end"),
        ("(2", 2, "is missing"),
        ("(2 3)i", 3, "is missing"),
        ("3", 1, "letter is missing"),
        ("<n", 1, "no standard size"),
        ("99999999999999999999i", 0, "too large"),
        ("t", 0, "unknown type 't'"),
    ],
)
def test_errors_name_their_position(fmt: str, pos: int, why: str) -> None:
    with pytest.raises(FormatError, match=why) as caught:
        parse_format(fmt)
    error = caught.value
    assert isinstance(error, ValueError)
    assert (error.format, error.pos) == (fmt, pos)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.format, copy.pos, str(copy)) == (fmt, pos, str(error))


@given(st.text("@<>=^!(),0123456789bhiqfdsTZ{}:x &X", max_size=12))
def test_malformed_formats_raise_only_format_errors(fmt: str) -> None:
    try:
        size, components = parse_format(fmt)
    except FormatError as error:
        assert 0 <= error.pos <= len(fmt)
        return
    assert size >= 0
    if size < 1 << 16:
        extract_item(bytes(size), components)


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(ValueError, match="dialect 'perl'"):
        parse_format("i", "perl")
