from __future__ import annotations

from collections.abc import Sequence

import pytest
from support.references.gpt import logits_of, tiny

from glassgrad.base.errors import ShapeError
from glassgrad.nn.gpt import Decoder, Sampler, generate, generate_ids


def test_greedy_tokens_are_those_of_the_plain_model() -> None:
    model = tiny("llama")
    found = [tokens[0] for tokens in generate_ids(model, [[1, 2, 3]], 8, Sampler(0))]
    row = [1, 2, 3]
    for _ in range(8):
        row.append(int(logits_of(model, row)[-1].argmax()))
    assert found == row[3:]


def test_a_batch_writes_what_its_rows_would_alone() -> None:
    model = tiny("gpt2")
    prompts = [[1, 2, 3], [7], [9, 8]]
    together = list(generate_ids(model, prompts, 6, Sampler(0)))
    for number, prompt in enumerate(prompts):
        alone = [tokens[0] for tokens in generate_ids(model, [prompt], 6, Sampler(0))]
        assert [tokens[number] for tokens in together] == alone


def test_a_full_context_goes_on_from_its_second_half() -> None:
    model = tiny("gpt2")
    decoder = Decoder(model, context=8)
    tokens = [token for (token,) in generate_ids(decoder, [[1, 2, 3]], 20, Sampler(0))]
    assert len(tokens) == 20
    # Eight tokens are read when the sixth was drawn; the last four of them are read again.
    row = [1, 2, 3, *tokens[:6]]
    assert tokens[6] == int(logits_of(model, row[-4:])[-1].argmax())


class Bytes:
    """A tokenizer whose tokens are the bytes 0 to 49, shifted into a snowman's."""

    def encode(self, text: str) -> list[int]:
        return [ord(letter) % 50 for letter in text]

    def decode(self, ids: Sequence[int]) -> str:
        snow = "☃".encode()
        return bytes(snow[i % 3] for i in ids).decode("utf-8", "replace")


class Script:
    """A sampler that draws what it was told to."""

    def __init__(self, tokens: list[int]) -> None:
        self.tokens = iter(tokens)

    def __call__(self, logits: object) -> list[int]:
        return [next(self.tokens)]


def test_parts_of_characters_wait_for_the_rest() -> None:
    script = Script([0, 1, 2, 3, 4, 5, 49])
    pieces = list(generate(tiny("gpt2"), Bytes(), "x", 7, script))
    assert pieces == ["☃", "☃", "�"]


def test_writing_ends_at_the_stop_token() -> None:
    script = Script([0, 1, 2, 7, 4, 5])
    assert list(generate(tiny("gpt2"), Bytes(), "x", 6, script, stop=7)) == ["☃"]


def test_writing_ends_at_any_of_several_stop_tokens() -> None:
    for stop in ((9, 7), {7}, [7]):
        script = Script([0, 1, 2, 7, 4, 5])
        assert list(generate(tiny("gpt2"), Bytes(), "x", 6, script, stop=stop)) == ["☃"]


class Pieces:
    """As SentencePiece: tokens begin with their blank, and the first blank of a text is cut."""

    words = ("▁to", "▁be", "or", "▁", "▁not")

    def encode(self, text: str) -> list[int]:
        return [self.words.index(f"▁{word}") for word in text.split()]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.words[i] for i in ids).replace("▁", " ").removeprefix(" ")


def test_pieces_keep_the_blanks_before_them() -> None:
    tokens = [1, 2, 4, 0, 3, 3, 1, 1, 1, 1, 1, 0]
    pieces = list(generate(tiny("gpt2"), Pieces(), "to be", len(tokens), Script(tokens)))
    words = [Pieces.words[token].replace("▁", " ") for token in tokens]
    assert pieces == words


def test_no_prompts_are_refused() -> None:
    with pytest.raises(ShapeError, match="at least one prompt"):
        next(generate_ids(tiny("gpt2"), [], 3))


def test_tokens_that_are_not_there_are_refused() -> None:
    with pytest.raises(IndexError, match="index -1 is out of range"):
        next(generate_ids(tiny("gpt2"), [[1, -1]], 3))
