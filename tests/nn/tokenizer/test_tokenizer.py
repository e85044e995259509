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
def test_round_trip_of_bytes(data: bytes) -> None:
    assert TRAINED.decode_bytes(TRAINED.encode(data)) == data


@given(st.text())
def test_round_trip_of_text(text: str) -> None:
    assert TRAINED.decode(TRAINED.encode(text)) == text


def encode_naively(tokenizer: Tokenizer, word: bytes) -> list[int]:
    tokens = [tokenizer.ids[bytes([byte])] for byte in word]
    while True:
        ranked = [
            (*tokenizer.merges[pair], index)
            for index, pair in enumerate(pairwise(tokens))
            if pair in tokenizer.merges
        ]
        if not ranked:
            return tokens
        _, token, index = min(ranked, key=lambda one: (one[0], one[2]))
        tokens[index : index + 2] = [token]


@given(st.text(alphabet="thecats ", max_size=40))
@settings(max_examples=200)
def test_merges_are_applied_in_the_order_of_their_ranks(text: str) -> None:
    word = text.encode()
    assert TRAINED._merge(word) == encode_naively(TRAINED, word)


def test_training_compresses_its_text() -> None:
    assert len(TRAINED.encode(TEXT)) < len(TEXT) / 2
    assert TRAINED.encode(" the") == [TRAINED.ids[b" the"]]


def test_training_stops_when_no_pair_occurs_twice() -> None:
    assert Tokenizer.train(["ab"], 1000).vocab_size == 257


def test_special_tokens_in_a_text_are_encoded_only_if_allowed() -> None:
    text = "cat<|endoftext|>dog"
    assert TRAINED.specials["<|endoftext|>"] not in TRAINED.encode(text)
    ids = TRAINED.encode(text, allow_special=True)
    assert ids.count(TRAINED.specials["<|endoftext|>"]) == 1
    assert TRAINED.decode(ids) == text


def test_encoding_a_long_word_is_not_quadratic() -> None:
    text = "x" * 200_000  # a quadratic loop would take minutes
    assert TRAINED.decode(TRAINED.encode(text)) == text


def test_an_unknown_token_is_refused() -> None:
    with pytest.raises(FormatError, match="token 999 is not in the vocabulary"):
        TRAINED.decode([999])


def test_half_of_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(FormatError, match="half of a surrogate pair"):
        TRAINED.encode("\ud800")


def test_a_vocabulary_smaller_than_the_bytes_is_refused() -> None:
    with pytest.raises(FormatError, match="vocab_size must be at least 257, not 256"):
        Tokenizer.train(["x"], 256)
