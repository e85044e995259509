from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassgrad.base.errors import FormatError
from glassgrad.nn.files.unpickler import Call, raise_object, unpickle


class NoNames:
    """A Builder that supports no names."""

    def persistent(self, description: Any) -> Any:
        raise FormatError("no persistent objects")

    def named(self, name: str) -> Any:
        return Call(name)

    def called(self, name: str, args: tuple[Any, ...]) -> Any:
        raise FormatError(f"asked to call {name}")

    def created(self, name: str) -> Any:
        raise_object(name)


KEYS = st.text(max_size=4) | st.integers()
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9)
)
VALUES = st.recursive(
    LEAVES | st.binary(max_size=9),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner),
)


@given(VALUES, st.integers(3, 5))
def test_plain_values_are_read_as_python_reads_them(value: Any, protocol: int) -> None:
    assert unpickle(pickle.dumps(value, protocol), NoNames()) == value


def test_shared_values_stay_shared() -> None:
    inner = [1]
    found = unpickle(pickle.dumps([inner, inner], 2), NoNames())
    assert found[0] is found[1]


BAD = {
    "a global that is called": (b"cos\nsystem\n(X\x04\0\0\0trueltR.", "call|damaged"),
    "an old instance": (b"(ios\nsystem\n.", "opcode INST"),
    "a new object": (
        b"\x80\x02cos\nsystem\n)\x81.",
        "an object of the class os.system, which cannot be built without its code",
    ),
    "an extension": (b"\x80\x02\x82\x01.", "opcode EXT1"),
    "nothing to pop": (b"0.", "damaged"),
    "no mark": (b"]t.", "mark is missing"),
    "an unknown memo id": (b"h\x07.", "damaged"),
    "append to a dict": (b"}K\x01a.", "only a list can"),
    "set items of a list": (b"]K\x01K\x02s.", "only a dict can"),
    "a key without a value": (b"}(K\x01u.", "only a dict can"),
    "a deep key": (b"})" + b"\x85" * 9 + b"K\x01s.", "a dict key is a tuple"),
    "state of a list": (b"]}b.", "has none"),
    "no end": (b"]", "damaged"),
    "too much": (b"]].", "one value on the stack"),
    "a string past the end": (b"X\xff\xff\xff\x7f.", "damaged"),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_pickles_are_refused(name: str) -> None:
    raw, message = BAD[name]
    with pytest.raises(FormatError, match=message):
        unpickle(raw, NoNames())


def test_a_huge_memo_number_takes_no_memory() -> None:
    assert unpickle(b"\x80\x02]r\xff\xff\xff\x7f.", NoNames()) == []


def test_deeply_nested_tuples_are_read() -> None:
    found = unpickle(b")" + b"\x85" * 100_000 + b".", NoNames())
    assert isinstance(found, tuple)


class Copying(NoNames):
    def called(self, name: str, args: tuple[Any, ...]) -> Any:
        return bytes(args[0])


def test_copying_a_long_string_many_times_is_refused() -> None:
    text = (
        b"cbytes\ncopy\n" + b"B" + (1 << 16).to_bytes(4, "little") + bytes(1 << 16) + b"q\x01\x85R"
    )
    copy = b"cbytes\ncopy\nh\x01\x85R"
    assert len(unpickle(b"\x80\x03(" + text + copy * 2 + b"t.", Copying())) == 3
    with pytest.raises(FormatError, match="copies the same data too often"):
        unpickle(b"\x80\x03(" + text + copy * 100 + b"t.", Copying())


def test_keys_may_be_tuples() -> None:
    value = {(1, "a"): 2, None: 3}
    assert unpickle(pickle.dumps(value, 2), NoNames()) == value
