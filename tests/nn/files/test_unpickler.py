from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassgrad.base.errors import FormatError
from glassgrad.nn.files.unpickler import Call, raise_object, unpickled


class Nobody:
    """Knows no names."""

    def persistent(self, found: Any) -> Any:
        raise FormatError("nothing is outside")

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
    assert unpickled(pickle.dumps(value, protocol), Nobody()) == value


def test_values_that_stand_twice_are_one() -> None:
    inner = [1]
    found = unpickled(pickle.dumps([inner, inner], 2), Nobody())
    assert found[0] is found[1]


BAD = {
    "a global that is called": (b"cos\nsystem\n(X\x04\0\0\0trueltR.", "call|damaged"),
    "an old instance": (b"(ios\nsystem\n.", "has no INST"),
    "a new object": (
        b"\x80\x02cos\nsystem\n)\x81.",
        "an object of os.system, which only its own code can read",
    ),
    "an extension": (b"\x80\x02\x82\x01.", "has no EXT1"),
    "nothing to pop": (b"0.", "damaged"),
    "no mark": (b"]t.", "mark is missing"),
    "a memo that is not there": (b"h\x07.", "damaged"),
    "a list that is none": (b"}K\x01a.", "no list"),
    "a dict that is none": (b"]K\x01K\x02s.", "no dict"),
    "a key without a value": (b"}(K\x01u.", "no dict"),
    "a deep key": (b"})" + b"\x85" * 9 + b"K\x01s.", "a key is a tuple"),
    "state of a list": (b"]}b.", "has none"),
    "no end": (b"]", "damaged"),
    "too much": (b"]].", "more than one value"),
    "a text past the end": (b"X\xff\xff\xff\x7f.", "damaged"),
}


@pytest.mark.parametrize("name", BAD)
def test_pickles_that_lie_are_refused(name: str) -> None:
    raw, message = BAD[name]
    with pytest.raises(FormatError, match=message):
        unpickled(raw, Nobody())


def test_a_huge_memo_number_takes_no_memory() -> None:
    assert unpickled(b"\x80\x02]r\xff\xff\xff\x7f.", Nobody()) == []


def test_deeply_nested_tuples_do_no_harm() -> None:
    found = unpickled(b")" + b"\x85" * 100_000 + b".", Nobody())
    assert isinstance(found, tuple)


class Copying(Nobody):
    def called(self, name: str, args: tuple[Any, ...]) -> Any:
        return bytes(args[0])


def test_a_long_text_that_is_copied_again_and_again_is_refused() -> None:
    text = (
        b"cbytes\ncopy\n" + b"B" + (1 << 16).to_bytes(4, "little") + bytes(1 << 16) + b"q\x01\x85R"
    )
    again = b"cbytes\ncopy\nh\x01\x85R"
    assert len(unpickled(b"\x80\x03(" + text + again * 2 + b"t.", Copying())) == 3
    with pytest.raises(FormatError, match="more of its parts than an honest one would"):
        unpickled(b"\x80\x03(" + text + again * 100 + b"t.", Copying())


def test_keys_may_be_pairs() -> None:
    value = {(1, "a"): 2, None: 3}
    assert unpickled(pickle.dumps(value, 2), Nobody()) == value
