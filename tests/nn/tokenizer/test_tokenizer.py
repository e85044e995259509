from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassgrad.base.errors import FormatError
from glassgrad.nn.tokenizer import Tokenizer

TEXT = "the cat sat on the mat; the dog's hat isn't the cat's. 1234 naïve ☃☃ \n\n    x = 1\n" * 3
TRAINED = Tokenizer.train([TEXT], 320)


@given(st.binary())
def test_any_bytes_come_back(data: bytes) -> None:
    assert TRAINED.decode_bytes(TRAINED.encode(data)) == data


@given(st.text())
def test_any_text_comes_back(text: str) -> None:
    assert TRAINED.decode(TRAINED.encode(text)) == text


def naive(tokenizer: Tokenizer, word: bytes) -> list[int]:
    tokens = [tokenizer.numbers[bytes([byte])] for byte in word]
    while True:
        ranked = [
            (*tokenizer.merges[pair], place)
            for place, pair in enumerate(pairwise(tokens))
            if pair in tokenizer.merges
        ]
        if not ranked:
            return tokens
        _, token, place = min(ranked, key=lambda one: (one[0], one[2]))
        tokens[place : place + 2] = [token]


@given(st.text(alphabet="thecats ", max_size=40))
@settings(max_examples=200)
def test_merges_are_made_in_the_order_they_were_learned(text: str) -> None:
    word = text.encode()
    assert TRAINED._merged(word) == naive(TRAINED, word)


def test_training_shortens_what_it_saw() -> None:
    assert len(TRAINED.encode(TEXT)) < len(TEXT) / 2
    assert TRAINED.encode(" the") == [TRAINED.numbers[b" the"]]


def test_training_stops_when_no_pair_is_met_twice() -> None:
    assert Tokenizer.train(["ab"], 1000).vocab_size == 257


def test_special_tokens_are_read_only_where_allowed() -> None:
    text = "cat<|endoftext|>dog"
    assert TRAINED.specials["<|endoftext|>"] not in TRAINED.encode(text)
    ids = TRAINED.encode(text, allow_special=True)
    assert ids.count(TRAINED.specials["<|endoftext|>"]) == 1
    assert TRAINED.decode(ids) == text


def test_a_long_word_takes_no_quadratic_time() -> None:
    text = "x" * 200_000  # a quadratic loop would take minutes
    assert TRAINED.decode(TRAINED.encode(text)) == text


def test_a_number_that_is_no_token_is_refused() -> None:
    with pytest.raises(FormatError, match="there is no token 999"):
        TRAINED.decode([999])


def test_half_a_character_is_refused() -> None:
    with pytest.raises(FormatError, match="half of a character"):
        TRAINED.encode("\ud800")


def test_a_vocabulary_smaller_than_the_bytes_is_refused() -> None:
    with pytest.raises(FormatError, match="at least 257 tokens"):
        Tokenizer.train(["x"], 256)
