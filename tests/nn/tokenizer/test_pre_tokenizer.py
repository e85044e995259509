from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassgrad.base.errors import FormatError
from glassgrad.nn.tokenizer.pre_tokenizer import GPT2_PATTERN, split_words, splitter


@given(st.text())
def test_words_cover_the_text(text: str) -> None:
    assert "".join(splitter(GPT2_PATTERN).findall(text)) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I've  gone", ["I", "'ve", " ", " gone"]),
        ("½x²", ["½", "x", "²"]),  # digits by category, which \d does not match
        ("日本 語", ["日本", " 語"]),
        ("a\n\n  b", ["a", "\n\n ", " b"]),
        ("\x1c!", ["\x1c!"]),  # not white space in Unicode
        ("_x", ["_", "x"]),
    ],
)
def test_words_are_split_as_gpt2_splits_them(text: str, words: list[str]) -> None:
    assert splitter(GPT2_PATTERN).findall(text) == words


def test_categories_are_translated_inside_and_outside_of_brackets() -> None:
    llama = splitter(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+")
    assert llama.findall("x=12345 (é") == ["x", "=", "123", "45", " (", "é"]


def test_an_invalid_pattern_is_refused() -> None:
    with pytest.raises(FormatError, match="cannot compile the pre-tokenizer pattern"):
        splitter("(")


def test_categories_of_one_and_two_letters() -> None:
    assert splitter(r"\p{Lu}\p{Ll}*").findall("CamelCase ÄrgerÉ") == ["Camel", "Case", "Ärger", "É"]
    assert splitter(r"\p{M}").findall("e\u0301\U000e0101") == ["\u0301", "\U000e0101"]
    assert splitter(r"[^\p{Nd}]+").findall("½1²2") == ["½", "²"]


def test_text_between_matches_is_a_word() -> None:
    assert list(split_words("ab12c", (r"\p{N}+",))) == ["ab", "12", "c"]
    assert list(split_words("ab12c", (r"\p{N}+", "b"))) == ["a", "b", "12", "c"]
    assert list(split_words("ab", ("x*",))) == ["a", "b"]
    assert list(split_words("", ("x",))) == []
